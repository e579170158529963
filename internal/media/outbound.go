package media

import (
	"crypto/rand"
	"encoding/binary"
	"time"

	"parley/internal/audio"
)

// queueFrames is how much may wait to be sent. A call gives one frame for each it
// hears; more than a few waiting means that it gives too much, and the oldest go.
const queueFrames = 10

// outbound makes the packets of a call, one per frame, as a state machine over
// given frames and times. Its owner keeps it to one goroutine at a time.
type outbound struct {
	params Params
	rate   audio.Rate
	mouth  *mouth
	cipher cipher
	dialer dialer

	queue  [queueFrames][]int16
	head   int
	queued int
	silent []int16

	packet    packet // of the last one, its timestamp that of the frame's sound
	started   bool
	frame     int64 // number of the last frame
	resumes   bool  // the next packet of sound is the first after a pause
	at        time.Duration
	buffer    [headerSize + frameTicks]byte
	toneFrame []int16

	packets, octets uint64
	overrun         uint64 // frames that did not fit the queue
	sinceReport     bool
}

func newOutbound(rate audio.Rate) *outbound {
	o := &outbound{rate: rate, silent: make([]int16, rate.FrameSamples()), resumes: true}
	o.toneFrame = make([]int16, rate.FrameSamples())
	for i := range o.queue {
		o.queue[i] = make([]int16, rate.FrameSamples())
	}
	// Unpredictable beginnings (RFC 3550 5.1): known plaintext helps an attacker,
	// and a stranger who guesses all three could speak in our name.
	var b [10]byte
	_, _ = rand.Read(b[:]) // it ends the process rather than fail
	o.packet.ssrc = binary.BigEndian.Uint32(b[:])
	o.packet.timestamp = binary.BigEndian.Uint32(b[4:])
	o.packet.sequence = binary.BigEndian.Uint16(b[8:]) & 0x7fff // far from a wrap, for SRTP's sake (RFC 3711 3.3.1)
	return o
}

// configure takes what was agreed on. SSRC, sequence and timestamp go on: to the
// peer it is the same stream with another payload type.
func (o *outbound) configure(params Params) error {
	if err := o.cipher.rekey(params.SendKey); err != nil {
		return err
	}
	if o.mouth == nil || o.mouth.codec != params.Codec {
		mouth, err := newMouth(params.Codec, o.rate)
		if err != nil {
			return err
		}
		o.mouth = mouth
	}
	o.params = params
	o.dialer.agree(o.rate, params.EventType != 0)
	return nil
}

// push queues a frame. What is missing of a short one is silence.
func (o *outbound) push(frame []int16) {
	if o.queued == queueFrames {
		o.overrun++
		o.pop()
	}
	room := o.queue[(o.head+o.queued)%queueFrames]
	clear(room[copy(room, frame):])
	o.queued++
}

// pop is the next frame to send: silence when the call has nothing to say, for a
// stream that never pauses keeps NATs open and jitter buffers calm.
func (o *outbound) pop() []int16 {
	if o.queued == 0 {
		return o.silent
	}
	frame := o.queue[o.head]
	o.head = (o.head + 1) % queueFrames
	o.queued--
	return frame
}

// next is the packet of this frame of the engine's time, encrypted where agreed,
// and nil when none is to be sent. It is valid until the next call.
func (o *outbound) next(now time.Duration, frame int64) []byte {
	o.advance(frame)
	o.at = now
	sound := o.pop()
	if !o.params.Direction.sends() {
		o.resumes = true
		return nil
	}
	if event, ok := o.dialer.event(o.packet.timestamp); ok {
		return o.sendEvent(event)
	}
	if o.dialer.tone(o.toneFrame) {
		sound = o.toneFrame
	}
	return o.sendSound(sound)
}

// advance moves the timestamp on with time, also over frames that were left out.
func (o *outbound) advance(frame int64) {
	if o.started {
		o.packet.timestamp += uint32((frame - o.frame) * frameTicks)
	}
	o.started, o.frame = true, frame
}

func (o *outbound) sendSound(sound []int16) []byte {
	n := o.mouth.encode(o.buffer[headerSize:], sound)
	// The marker begins a spurt of sound; a steady stream has one beginning, and
	// one after each pause (RFC 3551 4.1).
	p := packet{payloadType: uint8(o.params.Codec), marker: o.resumes, timestamp: o.packet.timestamp}
	o.resumes = false
	return o.finish(p, n)
}

// sendEvent sends a key in place of sound (RFC 4733 2.5.1): all packets of a key
// carry the timestamp of its beginning.
func (o *outbound) sendEvent(event audio.EventPacket) []byte {
	n := event.Put(o.buffer[headerSize:])
	o.resumes = true
	return o.finish(packet{payloadType: o.params.EventType, marker: event.Marker, timestamp: event.Timestamp}, n)
}

func (o *outbound) finish(p packet, payload int) []byte {
	o.packet.sequence++
	p.sequence, p.ssrc = o.packet.sequence, o.packet.ssrc
	p.putHeader(o.buffer[:])
	o.packets++
	o.octets += uint64(payload)
	o.sinceReport = true
	sealed, ok := o.cipher.seal(o.buffer[:headerSize+payload])
	if !ok {
		return nil
	}
	return sealed
}
