package dialer_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/dialer"
	"parley/internal/jobs"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// site is an installation with its database and dialers, but without a telephone: the test
// dials and ends the calls, in the transactions of the switchboard.
type site struct {
	t      *testing.T
	db     *store.DB
	dialer *dialer.Dialer
	tenant *store.Tenant
	user   parley.ID
}

func newSite(t *testing.T, db *store.DB) *site {
	t.Helper()
	user, _ := storetest.User(t, db, "a@example.com")
	return &site{t: t, db: db, dialer: node(t, db), tenant: db.Tenant(user.ID), user: user.ID}
}

// node is a dialer of its own process.
func node(t *testing.T, db *store.DB) *dialer.Dialer {
	t.Helper()
	queue, err := jobs.New(db, slog.New(slog.DiscardHandler), jobs.Work{})
	require.NoError(t, err)
	return &dialer.Dialer{DB: db, Queue: queue, Log: slog.New(slog.DiscardHandler), Caps: dialer.DefaultCaps(), Carriers: parley.Carriers{Simulated: true}}
}

// campaign is a running campaign with settings of a request.
func (s *site) campaign(settings parley.Input) *parley.Campaign {
	s.t.Helper()
	a := storetest.Assistant("Caller")
	require.NoError(s.t, s.tenant.CreateAssistant(s.t.Context(), a))
	in := parley.Input{"name": "Spring", "assistant_id": json.Number(strconv.FormatInt(a.ID, 10)), "timezone": "UTC"}
	for name, value := range settings {
		if n, ok := value.(int); ok {
			value = json.Number(strconv.Itoa(n))
		}
		in[name] = value
	}
	c, _, errs := parley.CreateCampaign(in)
	require.Empty(s.t, errs)
	require.NoError(s.t, s.tenant.CreateCampaign(s.t.Context(), c))
	s.start(c.ID)
	return c
}

func (s *site) start(id parley.ID) {
	s.t.Helper()
	s.change(id, func(c *parley.Campaign) error {
		return c.Start(parley.Readiness{Assistant: true, Line: true, Lead: true})
	})
}

func (s *site) stop(id parley.ID) {
	s.t.Helper()
	s.change(id, (*parley.Campaign).Stop)
}

func (s *site) change(id parley.ID, to func(*parley.Campaign) error) {
	s.t.Helper()
	require.NoError(s.t, s.tenant.Tx(s.t.Context(), func(t *store.Tenant) error {
		c, err := t.Campaign(s.t.Context(), id)
		if err != nil {
			return err
		}
		if err := to(c); err != nil {
			return err
		}
		return t.SetCampaignStatus(s.t.Context(), c)
	}))
}

func (s *site) leads(c *parley.Campaign, first, count int) (all []*parley.Lead) {
	s.t.Helper()
	for i := range count {
		all = append(all, storetest.Lead(s.t, s.tenant, c.ID, number(first+i)))
	}
	return all
}

func (s *site) tick() {
	s.t.Helper()
	require.NoError(s.t, s.dialer.Tick(s.t.Context(), time.Now()))
}

// waiting are the calls that were claimed and not yet dialled, the oldest first.
func (s *site) waiting() (all []parley.Call) {
	s.t.Helper()
	calls, _, err := s.tenant.Calls(s.t.Context(), store.CallFilter{Status: string(parley.CallInitiated), Limit: 1000})
	require.NoError(s.t, err)
	for i := range calls {
		if c := calls[len(calls)-1-i]; c.DialedAt == nil {
			all = append(all, c)
		}
	}
	return all
}

// dial does what the switchboard does before an INVITE leaves. A reason says why not.
func (s *site) dial(id parley.ID) (reason parley.EndReason) {
	s.t.Helper()
	reason, err := dialOn(s.t.Context(), s.dialer, id)
	require.NoError(s.t, err)
	return reason
}

func dialOn(ctx context.Context, d *dialer.Dialer, id parley.ID) (reason parley.EndReason, err error) {
	err = d.DB.System().Tx(ctx, func(tx *store.System) error {
		c, err := tx.Call(ctx, id)
		if err != nil || c.Status != parley.CallInitiated || c.DialedAt != nil {
			reason = parley.EndInternal
			return err
		}
		if reason, err = forbidden(ctx, d, tx, c); err != nil {
			return err
		}
		if reason == "" {
			claimed, err := tx.ClaimCall(ctx, id, d.Queue.Node())
			if !claimed {
				reason = parley.EndInternal
			}
			return err
		}
		at := time.Now().UTC()
		c.Status, c.EndReason, c.EndedAt = parley.CallFailed, &reason, &at
		if err := tx.EndCall(ctx, "", c); err != nil {
			return err
		}
		return d.Concluded(ctx, tx, c)
	})
	return reason, err
}

func forbidden(ctx context.Context, d *dialer.Dialer, tx *store.System, c *parley.Call) (parley.EndReason, error) {
	if asked, err := tx.HangupAsked(ctx, c.ID); err != nil || asked {
		return parley.EndHangup, err
	}
	if strings.HasPrefix(c.CustomerNumber, "+1900") { // one that policy forbids
		return parley.EndBlocked, nil
	}
	if reason, err := d.Recheck(ctx, tx, c); err != nil || reason != "" {
		return reason, err
	}
	listed, err := tx.Tenant(c.UserID).DoNotCall(ctx, c.CustomerNumber)
	if err != nil || listed[c.CustomerNumber] {
		return parley.EndDoNotCall, err
	}
	return "", nil
}

// end ends a call that is up as how says, and completes it if somebody answered.
func (s *site) end(id parley.ID, how func(*parley.Call)) {
	s.t.Helper()
	require.NoError(s.t, endOn(s.t.Context(), s.dialer, id, how))
}

func endOn(ctx context.Context, d *dialer.Dialer, id parley.ID, how func(*parley.Call)) error {
	return d.DB.System().Tx(ctx, func(tx *store.System) error {
		c, err := tx.Call(ctx, id)
		if err != nil {
			return err
		}
		at := time.Now().UTC()
		c.EndedAt = &at
		how(c)
		if err := tx.EndCall(ctx, d.Queue.Node(), c); err != nil {
			return err
		}
		if c.OptedOut {
			if err := tx.Tenant(c.UserID).AddDoNotCall(ctx, c.CustomerNumber, "asked in a call"); err != nil {
				return err
			}
		}
		if !c.Status.Final() {
			if _, err := tx.CompleteCall(ctx, c); err != nil {
				return err
			}
		}
		return d.Concluded(ctx, tx, c)
	})
}

// The ways a call ends.
func unanswered(c *parley.Call) { ending(c, parley.CallNoAnswer, parley.EndNotAnswered) }
func busy(c *parley.Call)       { ending(c, parley.CallBusy, parley.EndBusy) }
func broken(c *parley.Call)     { ending(c, parley.CallFailed, parley.EndCarrier) }
func talked(c *parley.Call)     { ending(c, parley.CallEndedByCustomer, parley.EndHungUp) }
func machine(c *parley.Call) {
	ending(c, parley.CallEnded, parley.EndVoicemail)
	c.AnsweredBy = "machine"
}
func optedOut(c *parley.Call) {
	ending(c, parley.CallEndedByAssistant, parley.EndOptOut)
	c.OptedOut = true
}

func ending(c *parley.Call, status parley.CallStatus, reason parley.EndReason) {
	c.Status, c.EndReason = status, &reason
}

// round ticks, dials everybody who is called, and ends the calls so.
func (s *site) round(how func(*parley.Call)) (called []string) {
	s.t.Helper()
	s.tick()
	for _, c := range s.waiting() {
		require.Empty(s.t, s.dial(c.ID))
		s.end(c.ID, how)
		called = append(called, c.CustomerNumber)
	}
	return called
}

func (s *site) lead(id parley.ID) *parley.Lead {
	s.t.Helper()
	l, err := s.tenant.Lead(s.t.Context(), id)
	require.NoError(s.t, err)
	return l
}

func (s *site) state(id parley.ID) *parley.Campaign {
	s.t.Helper()
	c, err := s.tenant.Campaign(s.t.Context(), id)
	require.NoError(s.t, err)
	return c
}

// forward has a campaign's waiting leads be due now, as if their time had come.
func (s *site) forward(c *parley.Campaign) {
	s.t.Helper()
	at := strconv.FormatInt(time.Now().Add(-2*time.Hour).UnixMicro(), 10)
	_, err := s.db.SQL().ExecContext(s.t.Context(), "UPDATE leads SET due_at = CASE WHEN due_at > "+at+" THEN "+at+" ELSE due_at END, wait_until = "+at+
		" WHERE wait_until > "+at+" AND campaign_id = "+strconv.FormatInt(c.ID, 10))
	require.NoError(s.t, err)
}
