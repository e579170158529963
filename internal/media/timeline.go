package media

import "bytes"

// timelineOctets is the length of a timeline: half a second, a power of two.
const (
	timelineOctets = 4096
	timelineMask   = timelineOctets - 1

	octetThere = byte(1)
)

// timeline holds the octets that have arrived, each at the place of its timestamp.
// All codecs here take one octet per tick, so packets of any length fit together
// as they come, in any order, and 20 ms are taken out whatever the packet time is.
type timeline struct {
	octets [timelineOctets]byte
	filled [timelineOctets]byte // octetThere or 0, in octets because they are searched fast
	from   int64                // the next to be played
	to     int64                // after the newest
}

func (t *timeline) empty() bool { return t.to <= t.from }

// put places a payload and says whether any of it was still of use.
func (t *timeline) put(at int64, payload []byte) bool {
	if at < t.from {
		late := min(t.from-at, int64(len(payload)))
		at, payload = at+late, payload[late:]
	}
	payload = payload[:max(0, min(int64(len(payload)), t.from+timelineOctets-at))]
	if len(payload) == 0 {
		return false
	}
	t.to = max(t.to, at+int64(len(payload)))
	for len(payload) > 0 {
		place := at & timelineMask
		n := copy(t.octets[place:], payload)
		filled := t.filled[place:][:n]
		for i := range filled {
			filled[i] = octetThere
		}
		at, payload = at+int64(n), payload[n:]
	}
	return true
}

// run says whether the next octets are there, and how many of them, or are
// missing, and how many: at most as many as asked for, and at least one.
func (t *timeline) run(most int) (present bool, n int) {
	place := int(t.from & timelineMask)
	ahead := t.filled[place:min(place+most, timelineOctets)]
	present = ahead[0] == octetThere
	ends := octetThere
	if present {
		ends = 0
	}
	if n = bytes.IndexByte(ahead, ends); n < 0 {
		n = len(ahead)
	}
	return present, n
}

// take copies the next octets, a run at most, to b and moves on.
func (t *timeline) take(b []byte) {
	copy(b, t.octets[t.from&timelineMask:])
	t.skip(int64(len(b)))
}

// skip moves on without looking.
func (t *timeline) skip(n int64) {
	for left := min(n, timelineOctets); left > 0; {
		place := t.from & timelineMask
		step := min(left, timelineOctets-place)
		clear(t.filled[place : place+step])
		t.from, left, n = t.from+step, left-step, n-step
	}
	t.from += n
}

// restart empties the timeline and begins anew at this place.
func (t *timeline) restart(at int64) {
	clear(t.filled[:])
	t.from, t.to = at, at
}

// back moves the beginning to an earlier place, which must not have been played.
func (t *timeline) back(at int64) {
	if at < t.from && t.to-at <= timelineOctets {
		t.from = at
	}
}
