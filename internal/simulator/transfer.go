package simulator

import (
	"context"
	"regexp"
	"time"

	"parley/internal/sip"
)

const (
	// ringsFor is how long the carrier lets the other number ring, less than assistants
	// wait for a transfer.
	ringsFor = 15 * time.Second
	// partsAfter is how long an assistant whose customer was put through may stay.
	partsAfter = 2 * time.Second
)

// dialable is a number that the carrier knows: all of them are somebody's.
var dialable = regexp.MustCompile(`^\+[1-9]\d{6,14}$`)

// refer puts the person through to another number, as carriers do for the customers who
// ask them to: it is tried, and what becomes of it is told. The person waits meanwhile.
func (t *telephone) refer(ctx context.Context, r *sip.Referral) {
	switch {
	case !dialable.MatchString(r.To):
		r.Refuse(404)
	case !t.person.wait(true):
		r.Refuse(491) // one at a time
	default:
		r.Accept()
		if !t.putThrough(ctx, r) {
			t.person.wait(false)
		}
	}
}

// putThrough rings at the other number and says whether the person is there now.
func (t *telephone) putThrough(ctx context.Context, r *sip.Referral) bool {
	who := t.carrier.calleeOf(r.To)
	if r.Report(ctx, 100) != nil {
		return false
	}
	if who.Refuses != 0 {
		_ = r.Report(ctx, who.Refuses)
		return false
	}
	unanswered := 408 // the carrier over there has failed
	if !who.NoReply {
		unanswered = 480
		if r.Report(ctx, 180) != nil {
			return false
		}
	}
	if who.NoReply || who.NeverAnswers || who.Rings > ringsFor {
		if elapsed(r, ringsFor) {
			_ = r.Report(ctx, unanswered)
		}
		return false
	}
	if !elapsed(r, who.Rings) {
		return false
	}
	t.person.gone(r.To) // before the assistant knows, who then hangs up
	if r.Report(ctx, 200) != nil {
		t.person.gone("")
		return false
	}
	if elapsed(r, partsAfter) {
		t.person.hangUp()
	}
	return true
}

// elapsed waits; false when the call was over before.
func elapsed(r *sip.Referral, d time.Duration) bool {
	wait := time.NewTimer(d)
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-r.Over():
		return false
	}
}
