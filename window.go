package parley

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// TimeOfDay is a reading of a wall clock: the seconds since midnight as the clock
// shows them, whatever the clock was changed to in between.
type TimeOfDay int

const endOfDay TimeOfDay = 24 * 60 * 60

// ParseTimeOfDay reads HH:MM or HH:MM:SS, from 00:00 to 23:59:59.
func ParseTimeOfDay(s string) (TimeOfDay, bool) {
	if len(s) == len("15:04") {
		s += ":00"
	}
	if len(s) != len("15:04:05") || s[2] != ':' || s[5] != ':' {
		return 0, false
	}
	hour, ok1 := twoDigits(s[0:2], 24)
	minute, ok2 := twoDigits(s[3:5], 60)
	second, ok3 := twoDigits(s[6:8], 60)
	return TimeOfDay((hour*60+minute)*60 + second), ok1 && ok2 && ok3
}

func twoDigits(s string, below int) (int, bool) {
	tens, ones := int(s[0])-'0', int(s[1])-'0'
	if tens < 0 || tens > 9 || ones < 0 || ones > 9 {
		return 0, false
	}
	n := tens*10 + ones
	return n, n < below
}

// String writes HH:MM:SS, as records show it.
func (t TimeOfDay) String() string {
	return fmt.Sprintf("%02d:%02d:%02d", t/3600, t/60%60, t%60)
}

// clockTime checks a time of day of a request.
func clockTime(s string) string {
	if _, ok := ParseTimeOfDay(s); !ok {
		return "must be a time of day such as 09:00 or 09:00:00."
	}
	return ""
}

// Weekdays are the words for the days of a week, in its order.
var Weekdays = []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

// Window is when calls may be placed: hours of the day, on some days of the week,
// on the wall clocks of a time zone. What the clock shows at an instant decides, so
// a time that a clock change skips never comes, and one that it repeats comes twice.
//
// The start belongs to the window and the end does not, except that 23:59:59 stands
// for the end of the day. A window whose end is before its start crosses midnight
// and belongs to the day it starts on. One whose end equals its start is empty:
// whether nothing or a whole day was meant cannot be known, and a call at the wrong
// hour cannot be taken back (CampaignForm refuses it).
//
// The zero Window is never open, and neither is one of an unknown zone.
type Window struct {
	zone     *time.Location
	days     [7]bool // by time.Weekday
	from, to TimeOfDay
}

// NewWindow makes a window. A nil zone makes one that is never open.
func NewWindow(zone *time.Location, days []time.Weekday, from, to TimeOfDay) Window {
	w := Window{zone: zone, from: from, to: to}
	if to == endOfDay-1 {
		w.to = endOfDay
	}
	for _, day := range days {
		if day >= time.Sunday && day <= time.Saturday {
			w.days[day] = true
		}
	}
	return w
}

// The hours in which people may be called wherever they are, on their own clocks
// (47 CFR 64.1200(c)).
const (
	calleeFrom TimeOfDay = 8 * 60 * 60
	calleeTo   TimeOfDay = 21 * 60 * 60
)

// CalleeWindow is 08:00 to 21:00 of every day in the zone of a called number.
func CalleeWindow(zone *time.Location) Window {
	w := Window{zone: zone, from: calleeFrom, to: calleeTo}
	for day := range w.days {
		w.days[day] = true
	}
	return w
}

// LoadZone finds a time zone by its IANA name. The empty name and "Local" are the
// server's clock, which nobody's customer lives by: they are unknown, and nil.
func LoadZone(name string) *time.Location {
	if name == "" || name == "Local" {
		return nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	return zone
}

// weekday finds a day by its word.
func weekday(word string) (time.Weekday, bool) {
	i := slices.Index(Weekdays, word)
	return time.Weekday((i + 1) % 7), i >= 0
}

// Open says whether a call may be placed at an instant.
func (w Window) Open(at time.Time) bool {
	if w.zone == nil {
		return false
	}
	local := at.In(w.zone)
	hour, minute, second := local.Clock()
	clock := TimeOfDay((hour*60+minute)*60 + second)
	today := local.Weekday()
	if w.from <= w.to {
		return w.days[today] && clock >= w.from && clock < w.to
	}
	yesterday := (today + 6) % 7
	return w.days[today] && clock >= w.from || w.days[yesterday] && clock < w.to
}

// horizon is how far Next looks. A window of one short hour a week can be skipped by
// a clock change, and by nothing for several weeks in a row.
const horizon = 36 * 24 * time.Hour

// Next is the first instant, not before at, at which the window is open; false when
// it never opens. A closed window opens when a clock reads its start or when the
// clock is changed, so only those instants are looked at.
func (w Window) Next(at time.Time) (time.Time, bool) {
	if w.zone == nil {
		return time.Time{}, false
	}
	last := at.Add(horizon)
	for from := at; !from.After(last); {
		if w.Open(from) {
			return from, true
		}
		_, changed := from.In(w.zone).ZoneBounds()
		until := changed
		if changed.IsZero() || changed.After(last) {
			until = last
		}
		if next, ok := w.nextStart(from, until); ok {
			return next, true
		}
		if until.Equal(last) {
			break
		}
		from = changed
	}
	return time.Time{}, false
}

// nextStart is the first time between two instants that a clock which is not
// changed between them reads the window's start, on one of its days.
func (w Window) nextStart(from, until time.Time) (time.Time, bool) {
	const day = int64(endOfDay)
	_, offset := from.In(w.zone).Zone()
	civil := from.Unix() + int64(offset)
	start := civil - mod(civil, day) + int64(w.from)
	for ; ; start += day {
		next := time.Unix(start-int64(offset), 0)
		if !next.Before(until) {
			return time.Time{}, false
		}
		if !next.Before(from) && w.Open(next) {
			return next.In(from.Location()), true
		}
	}
}

// mod is the remainder that is never negative, for times before 1970.
func mod(a, b int64) int64 { return (a%b + b) % b }

// Hours are windows that must all be open: a campaign's, and one for each zone that
// the called number may be in. No windows at all are never open.
type Hours []Window

// Open says whether all are open.
func (h Hours) Open(at time.Time) bool {
	for _, w := range h {
		if !w.Open(at) {
			return false
		}
	}
	return len(h) > 0
}

// Next is the first instant, not before at, at which all are open; false when they
// have no time in common.
func (h Hours) Next(at time.Time) (time.Time, bool) {
	last := at.Add(horizon)
	for next := at; len(h) > 0 && !next.After(last); {
		before := next
		for _, w := range h {
			var ok bool
			if next, ok = w.Next(next); !ok {
				return time.Time{}, false
			}
		}
		if next.Equal(before) {
			return next, true
		}
	}
	return time.Time{}, false
}

// CallingHours are when a number may be called for a campaign: in the campaign's own
// window and, by the rule of the callee's own hours, from 08:00 to 21:00 in every
// zone the number may be in. Without a zone the campaign's window alone decides; a
// zone that is unknown (nil) never opens.
func CallingHours(campaign Window, zones ...*time.Location) Hours {
	hours := make(Hours, 0, 1+len(zones))
	hours = append(hours, campaign)
	for _, zone := range zones {
		hours = append(hours, CalleeWindow(zone))
	}
	return hours
}

// String is the window in words, for logs and refusals.
func (w Window) String() string {
	if w.zone == nil {
		return "never (unknown time zone)"
	}
	var days []string
	for i, word := range Weekdays {
		if w.days[(i+1)%7] {
			days = append(days, word)
		}
	}
	return fmt.Sprintf("%s to %s on %s, %s", w.from, w.to, strings.Join(days, ", "), w.zone)
}
