package media

import (
	"net/netip"
	"time"

	"parley/internal/audio"
)

// comfortNoise is the payload type of RFC 3389: the peer is silent and says so.
const comfortNoise = 13

// digitsMost bounds the keys that wait for the next frame.
const digitsMost = 32

// inbound is everything that happens to what arrives, as a state machine over
// given packets and times. Its owner keeps it to one goroutine at a time.
type inbound struct {
	params   Params
	latch    latch
	cipher   cipher
	sequence sequence
	events   audio.EventReceiver
	playout  *playout
	digits   []byte
	watch    watchdog

	eventSSRC uint32 // of the last key
	aside     aside
	trial     held // keys of sources on trial

	duplicates, strangers, invalid uint64
	packets                        uint64
}

func newInbound(rate audio.Rate, deadAfter time.Duration) *inbound {
	return &inbound{playout: newPlayout(rate), digits: make([]byte, 0, digitsMost), watch: watchdog{after: deadAfter}}
}

// configure takes what was agreed on, at the start and with every re-INVITE. The
// stream goes on: a peer that keeps its SSRC is followed without a seam.
func (in *inbound) configure(now time.Duration, params Params) error {
	if err := in.cipher.rekey(params.ReceiveKey); err != nil {
		return err
	}
	if err := in.playout.switchTo(params.Codec); err != nil {
		return err
	}
	in.params = params
	in.latch.aim(params.Remote, params.NATHosts)
	// Who puts us on hold may play music, or send nothing for as long as it likes.
	in.watch.expect(now, params.Direction == SendReceive)
	return nil
}

// receive takes a datagram of the RTP port.
func (in *inbound) receive(now time.Duration, source netip.AddrPort, datagram []byte) {
	source = plain(source)
	if !in.latch.mayBe(source) {
		in.strangers++
		return
	}
	opened, ok := in.cipher.open(datagram)
	if !ok {
		in.invalid++
		return
	}
	p, ok := parsePacket(opened)
	if !ok || !in.understands(&p) {
		in.invalid++
		return
	}
	if !in.latch.hears(now, source, &p, in.cipher.key != nil) {
		in.strangers++
		if in.isEvent(&p) {
			in.trial.keep(now, source, opened)
		}
		return
	}
	if len(in.trial.packets) > 0 {
		in.proved(source)
	}
	in.accept(now, &p)
}

// understands says whether a payload type was agreed on. A peer may use each codec
// of the offer when it likes (RFC 3264 5.1), and their types are fixed.
func (in *inbound) understands(p *packet) bool {
	return Codec(p.payloadType).known() || p.payloadType == comfortNoise || in.isEvent(p)
}

func (in *inbound) isEvent(p *packet) bool {
	return p.payloadType != 0 && p.payloadType == in.params.eventHeard()
}

func (in *inbound) accept(now time.Duration, p *packet) {
	if in.isEvent(p) && in.sequence.started && p.ssrc != in.sequence.ssrc {
		if in.aside.hears(p) {
			in.watch.alive(now)
			in.key(p)
		}
		return
	}
	switch in.sequence.accept(p) {
	case repeated:
		in.duplicates++
		return
	case stale:
		in.playout.late++
		return
	case unproven:
		return
	case restarted:
		in.playout.restart()
	default:
	}
	in.packets++
	in.watch.alive(now)
	switch {
	case !in.params.Direction.receives() || p.payloadType == comfortNoise:
	case in.isEvent(p):
		in.key(p)
	default:
		in.sound(now, p)
	}
}

func (in *inbound) sound(now time.Duration, p *packet) {
	if err := in.playout.switchTo(Codec(p.payloadType)); err != nil {
		in.invalid++
		return
	}
	in.sequence.time(now, p.timestamp)
	in.playout.put(now, p.timestamp, p.payload)
}

// hear writes the next frame to out, appends the keys pressed since the last one
// to digits, and says whether the peer has just been found dead.
func (in *inbound) hear(now time.Duration, out []int16, digits []byte) ([]byte, bool) {
	in.playout.frame(now, out)
	digits = append(digits, in.digits...)
	in.digits = in.digits[:0]
	return digits, in.watch.dies(now)
}

// watchdog notices a peer that sends nothing any more.
type watchdog struct {
	after   time.Duration
	watches bool
	told    bool
	last    time.Duration // a packet, or the moment since which some are due
	heard   bool
}

// expect says from when on packets are due, if at all: a peer on hold sends none.
func (w *watchdog) expect(now time.Duration, packets bool) {
	w.watches, w.told, w.last = packets, false, now
}

func (w *watchdog) alive(now time.Duration) {
	w.last, w.told, w.heard = max(w.last, now), false, true
}

// dies says, once, that the time is up.
func (w *watchdog) dies(now time.Duration) bool {
	if !w.watches || w.told || now-w.last < w.after {
		return false
	}
	w.told = true
	return true
}
