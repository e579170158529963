package parley

import (
	"fmt"
	"slices"
	"strings"
)

// NumberPolicy is what may be dialled. It is asked before every call, apart from
// the form of the number.
type NumberPolicy struct {
	Blocked []string // prefixes in E.164 form; the zero value blocks DefaultBlocked
	Allowed []string // when set, only these prefixes, such as "+49" for one country
}

// DefaultBlocked are the prefixes behind which toll fraud collects its money, or
// where an automatic call does harm: premium rate, satellite and networks without a
// country, personal numbers, and the codes kept for emergencies and services.
var DefaultBlocked = slices.Concat(
	// ITU-T E.164.1 and E.164.3: satellite, international networks, premium rate, personal numbers, disaster relief, trials.
	[]string{"+870", "+881", "+882", "+883", "+878", "+888", "+979", "+991", "+999"},
	// North America: pay-per-call, and the N11 codes where an area code would stand.
	[]string{"+1900", "+1976", "+1211", "+1311", "+1411", "+1511", "+1611", "+1711", "+1811", "+1911", "+1500", "+1700"},
	// Premium rate and mass-calling numbers of national plans.
	[]string{
		"+4490", "+4491", "+4498", "+44871", "+44872", "+44873", "+4470", // United Kingdom; 070 is personal numbering
		"+49900", "+49137", "+49138", // Germany
		"+3389",                                // France
		"+34803", "+34806", "+34807", "+34905", // Spain
		"+39892", "+39894", "+39895", "+39899", // Italy
		"+31900", "+31906", "+31909", // Netherlands
		"+32900", "+32902", "+32903", "+32904", "+32905", "+32906", "+32907", "+32909", // Belgium
		"+41900", "+41901", "+41906", // Switzerland
		"+43900", "+43901", "+43930", "+43931", "+43939", // Austria
		"+35315",                        // Ireland
		"+351760", "+351761", "+351762", // Portugal
		"+46900", "+46939", "+46944", // Sweden
		"+47820", "+47829", // Norway
		"+4590",              // Denmark
		"+358600", "+358700", // Finland
		"+48700", "+48701", "+48703", "+48708", // Poland
		"+420900", "+420906", "+420909", // Czechia
		"+3690",            // Hungary
		"+40900", "+40906", // Romania
		"+30901", "+30909", // Greece
		"+90900",  // Türkiye
		"+61190",  // Australia
		"+64900",  // New Zealand
		"+81990",  // Japan
		"+852900", // Hong Kong
		"+78090",  // Russia
	},
)

// Check refuses a number that must not be dialled, in words fit for a user.
func (p NumberPolicy) Check(number string) error {
	blocked := p.Blocked
	if blocked == nil {
		blocked = DefaultBlocked
	}
	if prefix, ok := longestPrefix(number, blocked); ok {
		allowed, _ := longestPrefix(number, p.Allowed)
		if len(allowed) <= len(prefix) {
			return &Error{Code: Forbidden, Message: fmt.Sprintf("Calls to %s numbers are blocked by this installation's policy.", prefix)}
		}
	}
	if p.Allowed != nil {
		if _, ok := longestPrefix(number, p.Allowed); !ok {
			return &Error{Code: Forbidden, Message: "Calls to this country are not allowed by this installation's policy."}
		}
	}
	return nil
}

func longestPrefix(number string, prefixes []string) (longest string, found bool) {
	for _, prefix := range prefixes {
		if strings.HasPrefix(number, prefix) && len(prefix) > len(longest) {
			longest, found = prefix, true
		}
	}
	return longest, found
}

// CallCaps are the limits of an account. A limit of 0 is none.
type CallCaps struct {
	Parallel      int   // calls at once, those that wait to be placed too
	PerSecond     int   // calls begun within a second
	MinutesPerDay int   // of conversation, since midnight UTC
	SpendPerDay   Money // since midnight UTC
}

// Load is what an account has under way.
type Load struct {
	Live    int // calls at once
	Begun   int // calls within the last second
	Seconds int64
	Spent   Money
}

// Admit refuses a call that would go beyond a limit, and says which.
func (c CallCaps) Admit(now Load) error {
	switch {
	case c.SpendPerDay > 0 && now.Spent >= c.SpendPerDay:
		return &Error{Code: Payment, Message: fmt.Sprintf("The account's spend limit of %g a day is reached. It begins anew at midnight UTC.", c.SpendPerDay.Float())}
	case c.MinutesPerDay > 0 && now.Seconds >= int64(c.MinutesPerDay)*60:
		return &Error{Code: Payment, Message: fmt.Sprintf("The account's limit of %d minutes a day is reached. It begins anew at midnight UTC.", c.MinutesPerDay)}
	case c.Parallel > 0 && now.Live >= c.Parallel:
		return &Error{Code: TooMany, Message: fmt.Sprintf("The account has its %d calls at once. Try again when one has ended.", c.Parallel), RetryAfter: 5}
	case c.PerSecond > 0 && now.Begun >= c.PerSecond:
		return &Error{Code: TooMany, Message: fmt.Sprintf("The account may begin %d calls a second.", c.PerSecond), RetryAfter: 1}
	default:
		return nil
	}
}

// ErrDoNotCall is the refusal of a number whose owner asked not to be called.
func ErrDoNotCall() *Error {
	return &Error{Code: Forbidden, Message: "The number is on the do-not-call list."}
}
