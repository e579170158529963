package parley

import (
	"maps"
	"slices"
)

// EndReason is why a call ended: a closed list.
type EndReason string

// Fault is whose doing the end of a call was.
type Fault string

// The parties that a call can end by.
const (
	FaultCallee   Fault = "callee"
	FaultCarrier  Fault = "carrier"
	FaultProvider Fault = "provider"
	FaultUs       Fault = "us"
	FaultPolicy   Fault = "policy"
)

// Faults are all of them.
var Faults = []Fault{FaultCallee, FaultCarrier, FaultProvider, FaultUs, FaultPolicy}

// The reasons of a call that was answered.
const (
	EndHungUp       EndReason = "customer_hung_up"
	EndGoodbye      EndReason = "assistant_ended"
	EndTransferred  EndReason = "transferred"
	EndOptOut       EndReason = "opted_out"
	EndMaxDuration  EndReason = "max_duration"
	EndMaxSilence   EndReason = "max_silence"
	EndVoicemail    EndReason = "voicemail"
	EndMessageLeft  EndReason = "voicemail_message_left"
	EndTranscriber  EndReason = "transcriber_failed"
	EndModel        EndReason = "model_failed"
	EndSpeaker      EndReason = "speaker_failed"
	EndDuplex       EndReason = "duplex_failed"
	EndStopped      EndReason = "stopped" // this server was
	EndMediaFailure EndReason = "media_lost"
	EndHangup       EndReason = "hangup_requested" // by the API
	EndNodeLost     EndReason = "node_lost"        // the server that held the call died
)

// The reasons of a call that was not.
const (
	EndNotAnswered  EndReason = "not_answered"
	EndBusy         EndReason = "busy"
	EndDeclined     EndReason = "declined"
	EndNoSuchNumber EndReason = "no_such_number"
	EndUnavailable  EndReason = "unavailable"
	EndCarrier      EndReason = "carrier_failed"
	EndUnreachable  EndReason = "carrier_unreachable"
	EndUnauthorized EndReason = "carrier_refused_credentials"
	EndForbidden    EndReason = "carrier_forbade"
	EndRejected     EndReason = "carrier_rejected" // it found our request wrong
	EndUncertain    EndReason = "indeterminate"    // no answer came back: it may have rung
	EndTrunkFull    EndReason = "trunk_full"
	EndNoMedia      EndReason = "no_common_media"
	EndCallerLeft   EndReason = "caller_gave_up" // before an inbound call was answered
	EndBlocked      EndReason = "number_blocked"
	EndDoNotCall    EndReason = "do_not_call"
	EndWindow       EndReason = "outside_calling_hours"
	EndCampaign     EndReason = "campaign_stopped"
	EndLead         EndReason = "lead_changed" // ended or edited before its call was dialled
	EndNoAssistant  EndReason = "assistant_unavailable"
	EndNoTrunk      EndReason = "no_trunk"
	EndNoCapacity   EndReason = "no_capacity"
	EndInternal     EndReason = "internal_error"
)

var faults = map[EndReason]Fault{
	EndHungUp: FaultCallee, EndGoodbye: FaultUs, EndTransferred: FaultUs, EndOptOut: FaultCallee, EndMaxDuration: FaultPolicy,
	EndMaxSilence: FaultCallee, EndVoicemail: FaultCallee, EndMessageLeft: FaultCallee,
	EndTranscriber: FaultProvider, EndModel: FaultProvider, EndSpeaker: FaultProvider, EndDuplex: FaultProvider,
	EndStopped: FaultUs, EndMediaFailure: FaultCarrier, EndHangup: FaultUs, EndNodeLost: FaultUs,
	EndNotAnswered: FaultCallee, EndBusy: FaultCallee, EndDeclined: FaultCallee, EndNoSuchNumber: FaultCallee, EndUnavailable: FaultCallee,
	EndCarrier: FaultCarrier, EndUnreachable: FaultCarrier, EndUnauthorized: FaultUs, EndForbidden: FaultCarrier, EndRejected: FaultUs,
	EndUncertain: FaultCarrier, EndTrunkFull: FaultPolicy, EndNoMedia: FaultCarrier, EndCallerLeft: FaultCallee,
	EndBlocked: FaultPolicy, EndDoNotCall: FaultPolicy, EndWindow: FaultPolicy, EndCampaign: FaultPolicy, EndLead: FaultPolicy, EndNoAssistant: FaultPolicy, EndNoTrunk: FaultPolicy,
	EndNoCapacity: FaultUs, EndInternal: FaultUs,
}

// EndReasons are all of them, in alphabetical order.
func EndReasons() []EndReason { return slices.Sorted(maps.Keys(faults)) }

// Fault is whose doing it was.
func (r EndReason) Fault() Fault { return faults[r] }
