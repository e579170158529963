package dialer

import (
	"time"

	"github.com/nyaruka/phonenumbers"

	"parley"
)

// ZonesOf are the names of the time zones that a number may be in, by its prefix.
// None: the prefix says nothing, as for a satellite telephone.
func ZonesOf(number string) []string {
	// The form of a lead's number was checked when it came; what GetTimezonesForNumber
	// does first, reading the number and writing it again, costs ten times the search.
	zones, err := phonenumbers.GetTimezonesForPrefix(number)
	if err != nil || len(zones) == 1 && zones[0] == phonenumbers.UNKNOWN_TIMEZONE {
		return nil
	}
	return zones
}

// atlas remembers the zones it has loaded and those of the numbers it has met: a plan
// meets the same few many times, and loading one reads a file.
type atlas struct {
	zones map[string]*time.Location
	found map[string][]*time.Location // by number
}

func newAtlas() *atlas {
	return &atlas{zones: map[string]*time.Location{}, found: map[string][]*time.Location{}}
}

func (a *atlas) zone(name string) *time.Location {
	zone, ok := a.zones[name]
	if !ok {
		zone = parley.LoadZone(name)
		a.zones[name] = zone
	}
	return zone
}

// callee are the zones whose hours a call to a lead's contact must keep to: the
// lead's own where it has one, for its other numbers too, else those of the number.
func (a *atlas) callee(lead *parley.Lead, number string) []*time.Location {
	if lead.Timezone != nil && *lead.Timezone != "" {
		return []*time.Location{a.zone(*lead.Timezone)}
	}
	zones, ok := a.found[number]
	if !ok {
		for _, name := range ZonesOf(number) {
			zones = append(zones, a.zone(name))
		}
		a.found[number] = zones
	}
	return zones
}

// hours are when a lead's number may be called; asleep applies the rule of the callee's own.
func (a *atlas) hours(window parley.Window, lead *parley.Lead, number string, asleep bool) parley.Hours {
	if !asleep {
		return parley.CallingHours(window)
	}
	return parley.CallingHours(window, a.callee(lead, number)...)
}
