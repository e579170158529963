package dialer

import (
	"slices"
	"time"

	"parley"
)

// gates count what is up against what may be.
type gates struct {
	caps      *Caps
	campaigns map[parley.ID]int
	accounts  map[parley.ID]int
	trunks    map[parley.ID]*gate
	simulated map[parley.ID]bool
	all       gate
}

// gate is a limit on calls at once, of which some are kept for inbound ones, and on
// calls begun within a second. A limit of 0 is none.
type gate struct {
	limit, reserve, perSecond int
	inbound, outbound         int
	started                   int
}

// full says whether one more outbound call finds no room. Inbound calls use the
// reserve up before they take from the rest.
func (g *gate) full() bool {
	return g.limit > 0 && g.outbound+max(g.reserve, g.inbound) >= g.limit
}

func (g *gate) tooFast() bool { return g.perSecond > 0 && g.started >= g.perSecond }

func (g *gate) count(inbound bool) {
	if inbound {
		g.inbound++
	} else {
		g.outbound++
	}
}

func newGates(s *Situation) *gates {
	g := &gates{
		caps: &s.Caps, campaigns: map[parley.ID]int{}, accounts: map[parley.ID]int{}, trunks: map[parley.ID]*gate{}, simulated: map[parley.ID]bool{},
		all: gate{limit: s.Caps.Calls, reserve: s.Caps.Reserve, perSecond: s.Caps.PerSecond, started: s.Caps.Started},
	}
	for _, t := range s.Trunks {
		g.trunks[t.ID] = &gate{limit: t.Channels, reserve: t.Reserve, perSecond: t.PerSecond, started: t.Started}
		g.simulated[t.ID] = t.Simulated
	}
	for i := range s.Calls {
		call := &s.Calls[i]
		g.all.count(call.Inbound)
		if trunk := g.trunks[call.TrunkID]; trunk != nil {
			trunk.count(call.Inbound)
		}
		g.accounts[call.UserID]++
		if call.CampaignID != 0 {
			g.campaigns[call.CampaignID]++
		}
	}
	return g
}

// room says whether a campaign may begin a call now, and if not what is in the way.
func (g *gates) room(work *Work) Why {
	c := &work.Campaign
	limit := g.caps.perAccount(c.UserID)
	switch {
	case g.all.full():
		return Full
	case g.all.tooFast():
		return TooFast
	case limit > 0 && g.accounts[c.UserID] >= limit:
		return AccountFull
	case g.campaigns[c.ID] >= c.MaxCallsInParallel:
		return CampaignFull
	default:
		return ""
	}
}

// line picks a line with room, beginning with one that depends on the lead and the
// attempt: a pool is used evenly, and a retry shows another number.
func (g *gates) line(work *Work, next *candidate) (Line, Why) {
	why := NoLine
	for i := range work.Lines {
		line := work.Lines[(int(next.lead.ID)+next.attempt+i)%len(work.Lines)]
		trunk := g.trunks[line.TrunkID]
		switch {
		case trunk == nil:
		case trunk.full():
			why = TrunkFull
		case trunk.tooFast():
			why = TooFast
		default:
			return line, ""
		}
	}
	return Line{}, why
}

// take counts a call that is about to be placed.
func (g *gates) take(work *Work, line Line) {
	g.campaigns[work.Campaign.ID]++
	g.accounts[work.Campaign.UserID]++
	g.all.outbound++
	g.all.started++
	trunk := g.trunks[line.TrunkID]
	trunk.outbound++
	trunk.started++
}

// share gives the room there is to the campaigns, one call at a time: to the account
// with the fewest calls up and within it to the campaign with the fewest; of equals,
// to the one that has waited longest. So a campaign of ten leads meets no queue behind
// one of a million.
func (p *planner) share(queues []queue) {
	accounts := byAccount(queues)
	for {
		account := p.neediest(accounts)
		if account == nil {
			return
		}
		p.serve(account)
	}
}

// account is a user's campaigns that still have a lead to call.
type account struct {
	user     parley.ID
	queues   []*queue
	lastCall time.Time
}

func byAccount(queues []queue) []*account {
	var accounts []*account
	found := map[parley.ID]*account{}
	for i := range queues {
		q := &queues[i]
		if len(q.ready) == 0 {
			continue
		}
		user := q.work.Campaign.UserID
		a := found[user]
		if a == nil {
			a = &account{user: user}
			found[user] = a
			accounts = append(accounts, a)
		}
		a.queues = append(a.queues, q)
	}
	// Who was served last is asked of all campaigns, also of those without a lead now.
	for i := range queues {
		if a := found[queues[i].work.Campaign.UserID]; a != nil && queues[i].work.LastCall.After(a.lastCall) {
			a.lastCall = queues[i].work.LastCall
		}
	}
	return accounts
}

func (p *planner) neediest(accounts []*account) (least *account) {
	for _, a := range accounts {
		if len(a.queues) > 0 && (least == nil || p.needier(a, least)) {
			least = a
		}
	}
	return least
}

func (p *planner) needier(a, b *account) bool {
	up, than := p.gates.accounts[a.user], p.gates.accounts[b.user]
	if up != than {
		return up < than
	}
	if !a.lastCall.Equal(b.lastCall) {
		return a.lastCall.Before(b.lastCall)
	}
	return a.user < b.user
}

// serve gives an account one call, or finds that one of its campaigns has no room.
func (p *planner) serve(a *account) {
	at := 0
	for i := range a.queues {
		if p.hungrier(a.queues[i].work, a.queues[at].work) {
			at = i
		}
	}
	q := a.queues[at]
	if p.place(q) {
		a.lastCall = p.Now
	}
	if len(q.ready) == 0 {
		a.queues = slices.Delete(a.queues, at, at+1)
	}
}

func (p *planner) hungrier(a, b *Work) bool {
	up, than := p.gates.campaigns[a.Campaign.ID], p.gates.campaigns[b.Campaign.ID]
	if up != than {
		return up < than
	}
	if !a.LastCall.Equal(b.LastCall) {
		return a.LastCall.Before(b.LastCall)
	}
	return a.Campaign.ID < b.Campaign.ID
}

// place takes the first lead of a queue that can be called, or finds that none can:
// then all of them wait. It always shortens the queue.
func (p *planner) place(q *queue) bool {
	if why := p.gates.room(q.work); why != "" {
		p.putOff(q, why)
		return false
	}
	next := q.ready[0]
	callee := Callee{next.lead.UserID, next.number}
	if p.inCall[callee] {
		q.ready = q.ready[1:]
		p.wait(next.lead, time.Time{}, NumberInCall)
		return false
	}
	line, why := p.gates.line(q.work, &next)
	if why != "" {
		p.putOff(q, why)
		return false
	}
	q.ready = q.ready[1:]
	p.gates.take(q.work, line)
	p.inCall[callee] = true
	p.out.Calls = append(p.out.Calls, Call{
		LeadID: next.lead.ID, CampaignID: next.lead.CampaignID, UserID: next.lead.UserID,
		Contact: next.contact, Attempt: next.attempt, Number: next.number, Line: line,
	})
	return true
}

// putOff makes all of a queue wait. A rate frees itself within a second; room is freed
// by a call that ends.
func (p *planner) putOff(q *queue, why Why) {
	var until time.Time
	if why == TooFast {
		until = p.Now.Add(time.Second)
	}
	for i := range q.ready {
		p.wait(q.ready[i].lead, until, why)
	}
	q.ready = nil
}
