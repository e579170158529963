// Package dialer decides which leads are called when. The plan is a pure function of
// the situation: it reads no clock, no database and no telephone line, so that it
// can be tested by asking it. What it decides, others carry out; it must not know how.
package dialer

import (
	"time"

	"parley"
)

// Situation is everything a plan depends on.
type Situation struct {
	Now       time.Time
	Campaigns []Work
	Calls     []InFlight // every live call of the installation, inbound ones too
	Trunks    []Trunk
	Caps      Caps

	// Recent are the starts of the last attempts to a number, at least of those within
	// Caps.NumberPeriod, from all campaigns of its account.
	Recent map[Callee][]time.Time
	// DoNotCall are the due numbers whose owners asked not to be called.
	DoNotCall map[Callee]bool
}

// Work is a campaign with the leads of it that are due.
type Work struct {
	Campaign parley.Campaign
	Leads    []parley.Lead
	// Left is how many leads of the campaign are not done, those above included.
	Left int
	// LastCall is when the campaign last began a call: of two that are equal in all
	// else, the one that has waited longer goes first.
	LastCall time.Time
	// Lines are what the campaign may call from.
	Lines []Line
}

// Line is a number to call from and the trunk that carries it.
type Line struct {
	PhoneNumberID parley.ID // 0: the trunk's own
	TrunkID       parley.ID
}

// Trunk is a connection to a carrier and what it bears.
type Trunk struct {
	ID        parley.ID // 0: the operator's default or the simulated carrier
	Channels  int       // calls at once
	PerSecond int       // calls begun within a second
	Reserve   int       // channels kept free for inbound calls
	Started   int       // calls begun within the last second
	// Simulated callees sleep at no hour: the rule of the callee's own hours does not apply.
	Simulated bool
}

// InFlight is a live call.
type InFlight struct {
	UserID     parley.ID
	CampaignID parley.ID // 0: not of a campaign
	TrunkID    parley.ID
	Number     string // of the other party
	Inbound    bool
}

// Callee is a number as one account knows it. Accounts share neither lists nor counts:
// one would learn of the other's calls.
type Callee struct {
	UserID parley.ID
	Number string
}

// Caps are the installation's limits. A limit of 0 is none.
type Caps struct {
	Calls       int               // of all accounts at once; the room of all nodes, unless set
	Reserve     int               // of those, kept free for inbound calls
	PerSecond   int               // begun within a second
	Started     int               // begun within the last second
	PerAccount  int               // of one account at once
	Accounts    map[parley.ID]int // in place of PerAccount for some
	CalleeHours bool              // 08:00 to 21:00 at the called number

	NumberAttempts int // to one number of an account within NumberPeriod
	NumberPeriod   time.Duration
}

// DefaultCaps are safe for real people: their own hours, and three calls a day at most.
func DefaultCaps() Caps {
	return Caps{CalleeHours: true, NumberAttempts: 3, NumberPeriod: 24 * time.Hour}
}

// perAccount is how many calls an account may have up at once.
func (c *Caps) perAccount(user parley.ID) int {
	if limit, ok := c.Accounts[user]; ok {
		return limit
	}
	return c.PerAccount
}

// Plan is what to do now.
type Plan struct {
	Calls    []Call
	Waits    []Wait
	Done     []Done
	Complete []parley.ID // campaigns that have no lead left and are to end so
	// Next is the first instant at which time alone changes the plan; zero: never.
	// A call that ends, a new lead or a started campaign changes it too.
	Next time.Time
}

// Call is one to place now. Its lead is as it was; Claim is how it becomes.
type Call struct {
	LeadID     parley.ID
	CampaignID parley.ID
	UserID     parley.ID
	Contact    int // 0: the lead's own number
	Attempt    int // which round: 1 is the first
	Number     string
	Line       Line
}

// Wait is a lead that is not called now.
type Wait struct {
	LeadID     parley.ID
	CampaignID parley.ID
	Status     parley.LeadStatus // what the lead is while it waits
	Until      time.Time         // zero: until something else than time changes
	Why        Why
}

// Done is a lead that will not be called any more.
type Done struct {
	LeadID     parley.ID
	CampaignID parley.ID
	Status     parley.LeadStatus
	Why        Why
}

// Why is the reason that a lead is not called now.
type Why string

// The reasons. The first that holds is given.
const (
	NotRunning    Why = "campaign-not-running"
	RetryWait     Why = "retry-interval"
	CampaignHours Why = "campaign-hours"
	CalleeHours   Why = "callee-hours"
	NoHours       Why = "no-common-hours" // never, unless the campaign or the lead's zone is changed
	NumberLimit   Why = "number-limit"
	NumberInCall  Why = "number-in-call"
	NoLine        Why = "no-line"
	CampaignFull  Why = "campaign-full"
	AccountFull   Why = "account-full"
	TrunkFull     Why = "trunk-full"
	Full          Why = "installation-full"
	TooFast       Why = "calls-per-second"
	MaxRetries    Why = "max-retries"
	DoNotCall     Why = "do-not-call"
)
