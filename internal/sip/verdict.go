package sip

import (
	"context"
	"errors"
	"fmt"
	"time"

	gosip "github.com/emiago/sipgo/sip"
)

// Fault is who caused a call not to happen.
type Fault string

// Who can be at fault.
const (
	FaultCallee  Fault = "callee"
	FaultCarrier Fault = "carrier"
	FaultPolicy  Fault = "policy"
	FaultUs      Fault = "us"
)

// Outcome is what became of a call that was not answered.
type Outcome string

// The outcomes.
const (
	Busy          Outcome = "busy"
	NoAnswer      Outcome = "no_answer"
	NoSuchNumber  Outcome = "no_such_number"
	Declined      Outcome = "declined"
	Forbidden     Outcome = "forbidden"
	Unauthorized  Outcome = "unauthorized"
	NoMedia       Outcome = "no_common_media"
	CarrierFailed Outcome = "carrier_failed"
	Unreachable   Outcome = "carrier_unreachable"
	Limited       Outcome = "limited"
	Cancelled     Outcome = "cancelled"
	Indeterminate Outcome = "indeterminate"
	Rejected      Outcome = "rejected" // the carrier found our request wrong
)

// Failure is a call that was not answered, with its own verdict.
type Failure struct { //nolint:errname // it is what became of the call, and reads so
	Status     int // the SIP status, 0 when none came
	Outcome    Outcome
	Fault      Fault
	RetryAfter time.Duration // what the carrier asked for, 0 when nothing
	Err        error
}

func (f *Failure) Error() string {
	if f.Status > 0 {
		return fmt.Sprintf("sip: call %s (%d, %s)", f.Outcome, f.Status, f.Fault)
	}
	if f.Err != nil {
		return fmt.Sprintf("sip: call %s (%s): %v", f.Outcome, f.Fault, f.Err)
	}
	return fmt.Sprintf("sip: call %s (%s)", f.Outcome, f.Fault)
}

func (f *Failure) Unwrap() error { return f.Err }

// judge gives the verdict on a final status (RFC 3261 section 21).
func judge(status int) *Failure {
	f := &Failure{Status: status}
	switch status {
	case 486, 600:
		f.Outcome, f.Fault = Busy, FaultCallee
	case 408, 480, 487:
		f.Outcome, f.Fault = NoAnswer, FaultCallee
	case 404, 410, 484, 485, 604:
		f.Outcome, f.Fault = NoSuchNumber, FaultCallee
	case 603, 607, 608: // 607 unwanted (RFC 8197), 608 rejected (RFC 8688)
		f.Outcome, f.Fault = Declined, FaultCallee
	case 403:
		f.Outcome, f.Fault = Forbidden, FaultCarrier
	case 401, 407:
		f.Outcome, f.Fault = Unauthorized, FaultUs
	case 415, 488, 606:
		f.Outcome, f.Fault = NoMedia, FaultCarrier
	default:
		switch {
		case status >= 500 && status < 600, status >= 300 && status < 400:
			f.Outcome, f.Fault = CarrierFailed, FaultCarrier
		default:
			f.Outcome, f.Fault = Rejected, FaultUs
		}
	}
	return f
}

// judgeLoss gives the verdict when no final status came. heard says that the carrier
// had begun to answer: then the call may be alive beyond the lost transport, and
// nobody can know.
func judgeLoss(err error, heard bool) *Failure {
	switch {
	case heard:
		return &Failure{Outcome: Indeterminate, Fault: FaultCarrier, Err: err}
	case errors.Is(err, gosip.ErrTransactionTimeout): // RFC 3261 section 8.1.3.1: as 408
		return &Failure{Outcome: Unreachable, Fault: FaultCarrier, Err: err}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &Failure{Outcome: Cancelled, Fault: FaultUs, Err: err}
	default:
		return &Failure{Outcome: Unreachable, Fault: FaultCarrier, Err: err}
	}
}
