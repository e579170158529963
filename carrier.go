package parley

import "strings"

// Carrier is who carries a call.
type Carrier string

// The carriers.
const (
	CarrierTrunk     Carrier = "trunk"     // a trunk of the user's
	CarrierDefault   Carrier = "default"   // the operator's trunk
	CarrierSimulated Carrier = "simulated" // the simulated carrier
)

// Carriers is what an installation can call with beside its users' own trunks.
type Carriers struct {
	Default   bool // the operator has set a trunk
	Simulated bool // the simulated carrier runs
}

// fictional begins the numbers that stay with the simulated carrier also where there is
// a trunk: a range kept for fiction, +12025550100 to +12025550199.
const fictional = "+120255501"

// Fictional says whether a number is nobody's, so that calling it rings only at the
// simulated carrier.
func Fictional(number string) bool {
	return len(number) == len(fictional)+2 && strings.HasPrefix(number, fictional)
}

// Route is who carries a call to a number. trunk is that of the line the assistant calls
// from, nil without one; others says whether the user has any trunk: then a call that
// would go to the simulated carrier by mistake is refused instead of pretended.
func (c Carriers) Route(number string, trunk *ID, others bool) (Carrier, *ID, error) {
	switch {
	case c.Simulated && Fictional(number):
		return CarrierSimulated, nil, nil
	case trunk != nil:
		return CarrierTrunk, trunk, nil
	case c.Default:
		return CarrierDefault, nil, nil
	case others:
		return "", nil, noCarrier("The assistant's phone number is on none of your SIP trunks. Give the assistant a number of a trunk, or set sip_trunk_id on its number.")
	case c.Simulated:
		return CarrierSimulated, nil, nil
	default:
		return "", nil, noCarrier("There is no line to call with. Add a SIP trunk and give the assistant a number of it.")
	}
}

func noCarrier(message string) error {
	var errs FieldErrors
	errs.Add("assistant_id", message)
	return invalid(errs, DataInvalid)
}
