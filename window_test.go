package parley_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/promise"
)

// changing are zones whose clocks change, or changed, each in a way of its own: at
// midnight, by half an hour, to the south, around a month of fasting.
var changing = []string{
	"America/New_York", "America/Los_Angeles", "America/St_Johns", "America/Santiago", "America/Havana",
	"America/Sao_Paulo", "America/Asuncion", "America/Nuuk", "Atlantic/Azores", "Europe/London",
	"Europe/Berlin", "Europe/Chisinau", "Africa/Cairo", "Africa/Casablanca", "Asia/Beirut",
	"Asia/Jerusalem", "Asia/Gaza", "Australia/Lord_Howe", "Australia/Sydney", "Pacific/Auckland", "Pacific/Chatham",
}

var steady = []string{"UTC", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Tokyo", "Pacific/Kiritimati", "Pacific/Pago_Pago", "America/Phoenix", "Africa/Lagos"}

var unknown = []string{"", "Local", "Mars/Olympus", "Europe/Berlino", "../etc/passwd"}

// week is the oracle's whole knowledge: for every minute of a week as clocks show it,
// whether the window is open. It is filled by walking each window minute by minute.
type week [7 * 24 * 60]bool

func (w *week) fill(days []string, from, to string) {
	*w = week{}
	for _, day := range days {
		first := map[string]int{"sunday": 0, "monday": 1, "tuesday": 2, "wednesday": 3, "thursday": 4, "friday": 5, "saturday": 6}[day] * 24 * 60
		at, end := minuteOf(from), minuteOf(to)
		if to == "23:59:59" {
			end = 24 * 60
		}
		if end < at {
			end += 24 * 60
		}
		for ; at < end; at++ {
			w[(first+at)%len(w)] = true
		}
	}
}

func minuteOf(clock string) int {
	return int(clock[0]-'0')*600 + int(clock[1]-'0')*60 + int(clock[3]-'0')*10 + int(clock[4]-'0')
}

// open reads the clock of a zone as a person would: off its face.
func (w *week) open(zone *time.Location, at time.Time) bool {
	if zone == nil {
		return false
	}
	var face [16]byte
	text := at.In(zone).AppendFormat(face[:0], "15:04")
	return w[int(at.In(zone).Weekday())*24*60+minuteOf(string(text))]
}

// changes are the instants at which a zone's clocks were changed, found hour by hour.
func changes(zone *time.Location) (found []time.Time) {
	at := time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC)
	_, before := at.In(zone).Zone()
	for ; at.Year() < 2028; at = at.Add(30 * time.Minute) {
		if _, offset := at.In(zone).Zone(); offset != before {
			before = offset
			found = append(found, at)
		}
	}
	return found
}

func oracleZone(name string) *time.Location {
	if slices.Contains(unknown, name) {
		return nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return zone
}

func clockFace(r *rand.Rand) string {
	switch r.IntN(12) {
	case 0:
		return "00:00"
	case 1:
		return "23:59"
	}
	return time.Date(2000, 1, 1, r.IntN(24), r.IntN(60)/5*5, 0, 0, time.UTC).Format("15:04")
}

// windowCase is one random campaign and instant.
type windowCase struct {
	zone     string
	days     []string
	from, to string
	at       time.Time
}

func drawWindow(r *rand.Rand, near map[string][]time.Time) windowCase {
	c := windowCase{from: clockFace(r), to: clockFace(r)}
	if r.IntN(8) == 0 {
		c.to = "23:59:59"
	}
	for _, day := range parley.Weekdays {
		if r.IntN(3) > 0 {
			c.days = append(c.days, day)
		}
	}
	switch n := r.IntN(20); {
	case n == 0:
		c.zone = unknown[r.IntN(len(unknown))]
	case n < 5:
		c.zone = steady[r.IntN(len(steady))]
	default:
		c.zone = changing[r.IntN(len(changing))]
	}
	if around := near[c.zone]; len(around) > 0 && r.IntN(2) == 0 {
		c.at = around[r.IntN(len(around))].Add(time.Duration(r.Int64N(int64(60*time.Hour))) - 30*time.Hour)
	} else {
		c.at = time.Unix(r.Int64N(2_100_000_000), r.Int64N(1e9)) // 1970 to 2036
	}
	return c
}

func (c windowCase) campaign() *parley.Campaign {
	return &parley.Campaign{Timezone: c.zone, AllowedDays: c.days, HoursStart: c.from, HoursEnd: c.to}
}

func TestPromiseG1NeverOutsideTheWindow(t *testing.T) {
	t.Parallel()
	cases, next := promise.Figure(20_000, 1_000_000), promise.Figure(100, 2_000)
	r := rand.New(rand.NewPCG(1, uint64(cases)))
	zones, near := map[string]*time.Location{}, map[string][]time.Time{}
	for _, name := range slices.Concat(changing, steady, unknown) {
		if zones[name] = oracleZone(name); zones[name] != nil {
			near[name] = changes(zones[name])
		}
	}
	open, crossing := 0, 0
	for i := range cases {
		c := drawWindow(r, near)
		var w week
		w.fill(c.days, c.from, c.to)
		want := w.open(zones[c.zone], c.at)
		window := c.campaign().Window()
		if got := window.Open(c.at); got != want {
			t.Fatalf("%+v: open is %v, the clock says %v", c, got, want)
		}
		if want {
			open++
		}
		if minuteOf(c.from) > minuteOf(c.to) {
			crossing++
		}
		if i%(cases/next) == 0 {
			checkNext(t, c, &w, zones[c.zone])
		}
	}
	t.Logf("%d cases in %d zones, %d open, %d across midnight, %d searched minute by minute for the next opening", cases, len(zones), open, crossing, next)
}

// checkNext walks from an instant to the window's next opening and meets no earlier one.
func checkNext(t *testing.T, c windowCase, w *week, zone *time.Location) {
	t.Helper()
	c.at = c.at.Truncate(time.Minute)
	got, ok := c.campaign().Window().Next(c.at)
	for at := c.at; at.Before(c.at.Add(22 * 24 * time.Hour)); at = at.Add(time.Minute) {
		if w.open(zone, at) {
			require.True(t, ok, "%+v", c)
			require.True(t, got.Equal(at), "%+v: next is %s, the clock says %s", c, got, at)
			return
		}
	}
	require.False(t, ok && got.Before(c.at.Add(22*24*time.Hour)), "%+v: next is %s, the clock says never", c, got)
}

func TestPromiseG1OnTheDaysThatClocksChange(t *testing.T) {
	t.Parallel()
	step := promise.Figure(7*time.Minute, time.Minute)
	checks := 0
	for _, name := range changing {
		zone := oracleZone(name)
		around := changes(zone)
		for _, hours := range [][2]string{{"00:00", "23:59:59"}, {"01:00", "03:00"}, {"02:15", "02:45"}, {"22:00", "02:30"}, {"23:30", "00:30"}, {"08:00", "21:00"}} {
			c := windowCase{zone: name, days: []string{"saturday", "sunday", "thursday"}, from: hours[0], to: hours[1]}
			var w week
			w.fill(c.days, c.from, c.to)
			window := c.campaign().Window()
			for _, change := range around {
				for at := change.Add(-25 * time.Hour); at.Before(change.Add(25 * time.Hour)); at = at.Add(step) {
					checks++
					if window.Open(at) != w.open(zone, at) {
						t.Fatalf("%s %v: open is %v at %s", name, hours, window.Open(at), at.In(zone))
					}
				}
				c.at = change.Add(-3 * time.Hour)
				checkNext(t, c, &w, zone)
			}
		}
	}
	t.Logf("%d checks around the clock changes of %d zones", checks, len(changing))
}

func TestPromiseG1EveryZoneTheNumberMayBeIn(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 2))
	all := slices.Concat(changing, steady)
	always := (&parley.Campaign{Timezone: "UTC", AllowedDays: parley.Weekdays, HoursStart: "00:00", HoursEnd: "23:59:59"}).Window()
	for range 5_000 {
		at := time.Unix(1_500_000_000+r.Int64N(500_000_000), 0).Truncate(time.Minute)
		var zones []*time.Location
		for range r.IntN(4) {
			zones = append(zones, oracleZone(all[r.IntN(len(all))]))
		}
		awake := func(at time.Time) bool {
			for _, zone := range zones {
				if face := at.In(zone).Format("15:04"); face < "08:00" || face >= "21:00" {
					return false
				}
			}
			return true
		}
		hours := parley.CallingHours(always, zones...)
		require.Equal(t, awake(at), hours.Open(at), "%s in %v", at, zones)
		next, ok := hours.Next(at)
		for step := range 48 * 60 {
			if awake(at.Add(time.Duration(step) * time.Minute)) {
				require.True(t, ok)
				require.True(t, next.Equal(at.Add(time.Duration(step)*time.Minute)), "%s: %s in %v", at, next, zones)
				break
			}
		}
	}
	require.False(t, parley.CallingHours(always, nil).Open(time.Unix(0, 0)), "an unknown zone is never open")
	_, ok := parley.CallingHours(always, oracleZone("Pacific/Kiritimati"), oracleZone("America/New_York"), oracleZone("Asia/Kolkata")).Next(time.Unix(1e9, 0))
	require.False(t, ok, "no hour suits them all")
	require.False(t, parley.Hours{}.Open(time.Unix(0, 0)))
	_, ok = parley.Hours{}.Next(time.Unix(0, 0))
	require.False(t, ok)
}

func TestWindowToTheSecond(t *testing.T) {
	t.Parallel()
	window := func(from, to string) parley.Window {
		return (&parley.Campaign{Timezone: "UTC", AllowedDays: []string{"monday"}, HoursStart: from, HoursEnd: to}).Window()
	}
	monday := func(clock string) time.Time {
		at, err := time.Parse("2006-01-02 15:04:05.999999999", "2026-11-16 "+clock)
		require.NoError(t, err)
		return at
	}
	for _, c := range []struct {
		from, to, at string
		open         bool
	}{
		{"09:00:30", "17:00:15", "09:00:29.999999999", false},
		{"09:00:30", "17:00:15", "09:00:30", true},
		{"09:00:30", "17:00:15", "17:00:14.999999999", true},
		{"09:00:30", "17:00:15", "17:00:15", false},
		{"00:00", "23:59:59", "23:59:59.9", true},
		{"00:00", "23:59", "23:59:00", false},
		{"22:00", "23:59:59", "00:00:00", false},
		{"09:00", "09:00", "09:00:00", false},
		{"09:00", "09:00", "12:00:00", false},
		{"22:00", "02:00", "01:00:00", false}, // Monday's first hours belong to Sunday
		{"22:00", "02:00", "22:00:00", true},
		{"nonsense", "17:00", "12:00:00", false},
		{"09:00", "25:00", "12:00:00", false},
	} {
		require.Equal(t, c.open, window(c.from, c.to).Open(monday(c.at)), "%+v", c)
	}
	require.True(t, window("22:00", "02:00").Open(monday("01:00:00").AddDate(0, 0, 1)), "Tuesday's first hours belong to Monday")
	_, ok := window("09:00", "09:00").Next(monday("00:00:00"))
	require.False(t, ok)
	require.False(t, parley.Window{}.Open(monday("12:00:00")))
	broken := &parley.Campaign{Timezone: "UTC", AllowedDays: []string{"someday"}, HoursStart: "00:00", HoursEnd: "23:59:59"}
	require.False(t, broken.Window().Open(monday("12:00:00")))
	require.Equal(t, "never (unknown time zone)", parley.Window{}.String())
	require.Equal(t, "09:00:00 to 17:00:00 on monday, UTC", window("09:00", "17:00").String())
}

func FuzzTimeOfDay(f *testing.F) {
	for _, seed := range []string{"09:00", "23:59:59", "24:00", "", "9:00", "09:60", "0９:00", "-1:00", "00:00:60", "00:00:00 "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		clock, ok := parley.ParseTimeOfDay(s)
		_, short := time.Parse("15:04", s)
		_, long := time.Parse("15:04:05", s)
		want := len(s) == 5 && short == nil || len(s) == 8 && long == nil
		require.Equal(t, want, ok, "%q", s)
		if ok {
			again, ok := parley.ParseTimeOfDay(clock.String())
			require.True(t, ok)
			require.Equal(t, clock, again)
			require.Equal(t, s, clock.String()[:len(s)])
		}
	})
}
