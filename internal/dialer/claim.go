package dialer

import (
	"context"
	"errors"
	"time"

	"parley"
	"parley/internal/store"
)

// errFull is the error of a claim whose account may begin no call now.
var errFull = errors.New("dialer: the account may begin no call now")

// place claims the calls of a plan, each in a transaction of its own.
func (d *Dialer) place(ctx context.Context, plan *Plan) error {
	full := map[parley.ID]bool{}
	for i := range plan.Calls {
		call := &plan.Calls[i]
		if full[call.UserID] {
			continue
		}
		err := d.claim(ctx, call)
		if errors.Is(err, errFull) {
			full[call.UserID] = true
		} else if err != nil {
			return err
		}
	}
	return nil
}

// claim makes a planned call a row with its job. The campaign is locked, so that its calls
// are counted exactly and none is placed once a stop has been answered; everything else
// that the plan assumed is asked again. A call that may not be made any more is left to
// the next plan.
//
// Locks are taken in the order of all who take several: the campaign, the do-not-call list,
// the account, the lead, the counts of calls, the counts of leads.
func (d *Dialer) claim(ctx context.Context, call *Call) error {
	err := d.DB.Tenant(call.UserID).Tx(ctx, func(t *store.Tenant) error { return d.claimIn(ctx, t, call) })
	if parley.ErrorCode(err) != "" {
		// The campaign, the lead or the line is gone, or policy forbids it: the next plan
		// sees that.
		d.Log.Debug("a planned call is not made", "campaign", call.CampaignID, "lead", call.LeadID, "error", err)
		return nil
	}
	return err
}

func (d *Dialer) claimIn(ctx context.Context, t *store.Tenant, call *Call) error {
	c, err := t.Campaign(ctx, call.CampaignID)
	if err != nil || c.Status != parley.CampaignInProgress {
		return err
	}
	up, err := t.System().CampaignCalls(ctx, c.ID)
	if err != nil || int(up) >= c.MaxCallsInParallel {
		return err
	}
	a, line, err := t.Caller(ctx, c.AssistantID)
	if err != nil || a.Status != parley.Active {
		return err
	}
	if line, err = d.lineOf(ctx, t, call, line); err != nil {
		return err
	}
	listed, err := t.DoNotCall(ctx, call.Number)
	if err != nil {
		return err
	}
	if free, err := d.free(ctx, t, call.Number); err != nil || !free {
		return err
	}
	lead, err := t.Lead(ctx, call.LeadID)
	if err != nil || Recheck(time.Now(), c, lead, *call, d.sleeps(call, line), listed[call.Number]) != "" {
		return err
	}
	claimed, ok := Claim(*lead, *call)
	if !ok {
		return nil
	}
	row, err := d.row(ctx, t, c, a, line, &claimed, call)
	if err != nil {
		return err
	}
	if err := t.CreateCall(ctx, row, ""); err != nil {
		return err
	}
	if err := t.SaveProgress(ctx, &claimed); err != nil {
		return err
	}
	return d.Queue.Dial(ctx, t.System(), row.ID)
}

// free says whether the account may begin a call, and one to this number.
func (d *Dialer) free(ctx context.Context, t *store.Tenant, number string) (bool, error) {
	now := time.Now()
	load, err := t.Load(ctx, now)
	if err != nil {
		return false, err
	}
	if d.Account.Admit(load) != nil {
		return false, errFull
	}
	up, made, err := t.NumberLoad(ctx, number, now.Add(-d.Caps.NumberPeriod))
	return up == 0 && (d.Caps.NumberAttempts <= 0 || made < d.Caps.NumberAttempts), err
}

// lineOf is the line that the plan chose; without one it is the assistant's own.
func (d *Dialer) lineOf(ctx context.Context, t *store.Tenant, call *Call, own *parley.PhoneNumber) (*parley.PhoneNumber, error) {
	if call.Line.PhoneNumberID == 0 || own != nil && own.ID == call.Line.PhoneNumberID {
		return own, nil
	}
	return t.PhoneNumber(ctx, call.Line.PhoneNumberID)
}

// sleeps says whether the callee's own hours count for a call: not at the simulated carrier.
func (d *Dialer) sleeps(call *Call, line *parley.PhoneNumber) bool {
	isReal := d.Carriers.Default || line != nil && line.TrunkID != nil
	return d.Caps.CalleeHours && isReal && !parley.Fictional(call.Number)
}

// row is the call of a claim.
func (d *Dialer) row(ctx context.Context, t *store.Tenant, c *parley.Campaign, a *parley.Assistant, line *parley.PhoneNumber, lead *parley.Lead, call *Call) (*parley.Call, error) {
	row := &parley.Call{
		AssistantID: a.ID, AssistantName: a.Name, CampaignID: &c.ID, CampaignName: &c.Name, LeadID: &lead.ID, LeadContact: call.Contact, LeadAttempt: call.Attempt,
		Type: parley.Outbound, Status: parley.CallInitiated, CustomerNumber: call.Number, Variables: lead.VariablesOf(call.Contact),
	}
	var trunk *parley.ID
	if line != nil {
		row.AssistantNumber, trunk = line.Number, line.TrunkID
	}
	others, err := t.HasTrunk(ctx)
	if err != nil {
		return nil, err
	}
	row.Carrier, row.TrunkID, err = d.Carriers.Route(call.Number, trunk, others)
	return row, err
}

// Recheck is asked in the transaction that dials a call: the campaign may have been stopped,
// or its hours may have ended, while the call waited for its turn. The campaign cannot be
// stopped between the answer and the commit.
func (d *Dialer) Recheck(ctx context.Context, tx *store.System, c *parley.Call) (parley.EndReason, error) {
	if c.CampaignID == nil || c.LeadID == nil {
		return "", nil
	}
	t := tx.Tenant(c.UserID)
	campaign, err := t.CampaignToUse(ctx, *c.CampaignID)
	if parley.ErrorCode(err) == parley.NotFound {
		return parley.EndCampaign, nil
	}
	if err != nil {
		return "", err
	}
	lead, err := t.Lead(ctx, *c.LeadID)
	if parley.ErrorCode(err) == parley.NotFound {
		return parley.EndLead, nil
	}
	if err != nil {
		return "", err
	}
	call := Call{LeadID: lead.ID, Contact: c.LeadContact, Attempt: c.LeadAttempt, Number: c.CustomerNumber}
	if reason := withdrawn(lead, &call); reason != "" {
		return reason, nil
	}
	asleep := d.Caps.CalleeHours && c.Carrier != parley.CarrierSimulated
	switch Recheck(time.Now(), campaign, lead, call, asleep, false) { // the list is asked for every call
	case "":
		return "", nil
	case CampaignHours, CalleeHours:
		return parley.EndWindow, nil
	default:
		return parley.EndCampaign, nil
	}
}

// withdrawn says why a call that was claimed for a lead is not the lead's any more: it was
// ended or edited while the call waited for its turn.
func withdrawn(lead *parley.Lead, call *Call) parley.EndReason {
	switch {
	case lead.Status == parley.LeadBlacklisted:
		return parley.EndDoNotCall
	case lead.Status != parley.LeadProcessing, lead.Attempts != call.Attempt,
		call.Contact >= lead.Contacts(), lead.Number(call.Contact) != call.Number:
		return parley.EndLead
	default:
		return ""
	}
}

// Concluded moves a lead on when a call to it is over, in the transaction that ended it.
func (d *Dialer) Concluded(ctx context.Context, tx *store.System, c *parley.Call) error {
	campaign, err := tx.CampaignOf(ctx, c)
	if err != nil || c.LeadID == nil {
		return goneIsFine(err)
	}
	lead, err := tx.Tenant(c.UserID).Lead(ctx, *c.LeadID)
	if err != nil || lead.Attempts != c.LeadAttempt && !c.OptedOut {
		return goneIsFine(err) // deleted, or put back in the queue: the call is not its attempt any more
	}
	var after parley.Lead
	if unused(campaign, c) {
		after = Unclaim(*lead, c.LeadContact, c.LeadAttempt)
	} else {
		after = Outcome(campaign, *lead, result(c))
	}
	return tx.Tenant(c.UserID).SaveProgress(ctx, &after)
}

// unused says whether a call leaves its lead the attempt: one that was never dialled. But
// one that was refused for its number, or because its owner hung up, would be refused
// again or is not wanted: it counts.
func unused(campaign *parley.Campaign, c *parley.Call) bool {
	if c.DialedAt != nil || c.OptedOut {
		return false
	}
	switch *c.EndReason {
	case parley.EndBlocked:
		return false
	case parley.EndHangup:
		return campaign.Status != parley.CampaignInProgress // stopped with its calls
	default:
		return true
	}
}

// result is a call as the retry rules see it.
func result(c *parley.Call) Result {
	r := Result{Contact: c.LeadContact, Number: c.CustomerNumber, Status: c.Status, At: time.Now().UTC(), OptOut: c.OptedOut, Evaluation: c.Evaluation}
	if c.EndedAt != nil {
		r.At = *c.EndedAt
	}
	if c.EndReason != nil {
		r.Indeterminate = *c.EndReason == parley.EndNodeLost
	}
	r.Voicemail = c.AnsweredBy == "machine"
	return r
}
