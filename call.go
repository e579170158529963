package parley

import "slices"

// CallStatus is how far a call has come.
type CallStatus string

// The statuses. Every one can be filtered by.
const (
	CallInitiated        CallStatus = "initiated"
	CallRinging          CallStatus = "ringing"
	CallInProgress       CallStatus = "in-progress"
	CallEndedByCustomer  CallStatus = "ended_by_customer"
	CallEndedByAssistant CallStatus = "ended_by_assistant"
	CallEnded            CallStatus = "ended" // the system ended it: a limit, silence, voicemail, a stop
	CallCompleted        CallStatus = "completed"
	CallBusy             CallStatus = "busy"
	CallNoAnswer         CallStatus = "no-answer"
	CallFailed           CallStatus = "failed"
)

// CallStatuses are all of them, in the order a call goes through them.
var CallStatuses = []CallStatus{CallInitiated, CallRinging, CallInProgress, CallEndedByCustomer, CallEndedByAssistant, CallEnded, CallCompleted, CallBusy, CallNoAnswer, CallFailed}

// stage orders the statuses. A call only ever moves to a later stage; it may skip some.
var stage = map[CallStatus]int{
	CallInitiated: 1, CallRinging: 2, CallInProgress: 3,
	CallEndedByCustomer: 4, CallEndedByAssistant: 4, CallEnded: 4,
	CallCompleted: 5,
}

// withoutConversation are the ends of a call that nobody answered.
var withoutConversation = []CallStatus{CallBusy, CallNoAnswer, CallFailed}

// CanBecome says whether a call may move from one status to another: never
// backward, and to an end without a conversation only before there was one.
func (s CallStatus) CanBecome(next CallStatus) bool {
	if slices.Contains(withoutConversation, next) {
		return s == CallInitiated || s == CallRinging
	}
	return stage[s] > 0 && stage[next] > stage[s]
}

// Final says whether a call's status will not change any more.
func (s CallStatus) Final() bool {
	return s == CallCompleted || slices.Contains(withoutConversation, s)
}

// Talked says whether there was, or is, a conversation.
func (s CallStatus) Talked() bool { return stage[s] >= stage[CallInProgress] }

// Before are the statuses from which a call may become this one: what a guarded
// update asks of the row.
func (s CallStatus) Before() (from []CallStatus) {
	for _, status := range CallStatuses {
		if status.CanBecome(s) {
			from = append(from, status)
		}
	}
	return from
}
