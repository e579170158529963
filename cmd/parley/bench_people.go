package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/provider/sandbox"
	"parley/internal/sip"
)

// people are the other end of a bench's calls: a carrier behind which everybody asks the
// same question again and again and counts what reaches them. Their speech is rendered
// and coded once, and nothing they hear is decoded, so that they cost a machine as
// little as two-way sound can.
type people struct {
	agent  *sip.Agent
	script [][]byte // coded frames, repeated

	invites, sent, received, lost atomic.Int64

	mu      sync.Mutex
	slots   [peopleSlots]map[*person]bool
	next    int // the slot of the next one
	talking int
	silence []time.Duration // from the answer to the first sound, by call
	quit    chan struct{}
	pacing  sync.WaitGroup
}

const (
	peopleSlots = 10 // of 2 ms: a thousand packets do not leave at once
	frameBytes  = 160
	headerBytes = 12 // of RTP
)

// person is one call.
type person struct {
	people   *people
	conn     *net.UDPConn
	remote   netip.AddrPort
	call     *sip.Call
	over     chan struct{}
	slot     int
	answered time.Time
	quiet    atomic.Bool // sends nothing any more

	packet [headerBytes + frameBytes]byte
	at     int // of the script
	heard  atomic.Bool
	last   uint16 // sequence number
	begun  bool
}

// startPeople opens their carrier on loopback.
func startPeople(says ...string) (*people, error) {
	p := &people{quit: make(chan struct{})}
	for i := range p.slots {
		p.slots[i] = map[*person]bool{}
	}
	if err := p.render(says); err != nil {
		return nil, err
	}
	var err error
	p.agent, err = sip.New(sip.Settings{
		Listen: []sip.Listen{{Network: "udp", Address: "127.0.0.1:0"}}, OptionsEvery: -1, SessionExpires: -1, MaxCalls: 20_000,
		Product: "Parley bench", Incoming: p.incoming,
	})
	if err != nil {
		return nil, err
	}
	if err := p.agent.Start(); err != nil {
		return nil, err
	}
	p.agent.SetTrunks([]parley.Trunk{{ID: 1, Address: "127.0.0.1", Transport: "udp", AllowedInbound: []string{"127.0.0.1"}, CallingFormat: "+e164"}})
	p.pacing.Go(p.pace)
	return p, nil
}

// render makes the script: a sentence, and time to hear the answer.
func (p *people) render(says []string) error {
	voice := sandbox.New(sandbox.Options{}).Speaker()
	samples := make([]int16, 0, 20*8000)
	for _, text := range says {
		u := converse.Utterance{Text: text, Voice: "tenor", Language: "en", Rate: audio.Rate8k, Speed: 1}
		if err := voice.Speak(context.Background(), u, func(s converse.Sound) { samples = append(samples, s.Samples...) }); err != nil {
			return err
		}
		samples = append(samples, make([]int16, 4*8000)...)
	}
	if len(samples) == 0 {
		samples = make([]int16, 8000)
	}
	for ; len(samples) >= frameBytes; samples = samples[frameBytes:] {
		frame := make([]byte, frameBytes)
		audio.EncodeMuLaw(frame, samples[:frameBytes])
		p.script = append(p.script, frame)
	}
	return nil
}

// close ends all calls and the carrier.
func (p *people) close() error {
	err := p.agent.Close()
	close(p.quit)
	p.pacing.Wait()
	return err
}

// address is where their carrier is.
func (p *people) address() string { return p.agent.Addr("udp").String() }

// incoming picks up.
func (p *people) incoming(_ context.Context, in *sip.Incoming) {
	p.invites.Add(1)
	if in.Offer == nil {
		return
	}
	who, err := p.newPerson()
	if err != nil {
		return
	}
	_ = in.Ring()
	who.answered = time.Now()
	who.call, err = in.Answer(who.media(), who.hooks())
	if err != nil {
		_ = who.conn.Close()
		return
	}
	who.talk(in.Offer.Remote)
}

func (p *people) newPerson() (*person, error) {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	_ = conn.SetReadBuffer(64 << 10)
	who := &person{people: p, conn: conn, over: make(chan struct{}), at: rand.IntN(len(p.script))}
	who.packet[0] = 2 << 6 // RFC 3550 5.1; the payload type of PCMU is 0
	binary.BigEndian.PutUint32(who.packet[8:], rand.Uint32())
	return who, nil
}

func (w *person) media() sip.Media {
	local := w.conn.LocalAddr().(*net.UDPAddr).AddrPort() //nolint:forcetypeassert // of a UDP socket
	return sip.Media{Address: local.Addr().Unmap(), Port: local.Port(), Codecs: []sip.Codec{sip.PCMU(), sip.TelephoneEvent()}}
}

func (w *person) hooks() sip.Hooks {
	return sip.Hooks{Ended: func(sip.End) { close(w.over) }}
}

// talk speaks and listens until the call is over.
func (w *person) talk(remote netip.AddrPort) {
	w.remote = remote
	w.people.join(w)
	listening := make(chan struct{})
	go func() {
		w.listen()
		close(listening)
	}()
	<-w.over
	w.people.leave(w)
	_ = w.conn.Close()
	<-listening
}

func (p *people) join(w *person) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.slot = p.next
	p.next = (p.next + 1) % peopleSlots
	p.slots[w.slot][w] = true
	p.talking++
}

func (p *people) leave(w *person) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.slots[w.slot], w)
	p.talking--
}

// pace sends everybody's frames, a slot of them every 2 ms.
func (p *people) pace() {
	const slot = audio.FrameDuration / peopleSlots
	start := time.Now()
	for n := 0; ; n++ {
		select {
		case <-p.quit:
			return
		case <-time.After(time.Until(start.Add(time.Duration(n) * slot))):
		}
		p.mu.Lock()
		for who := range p.slots[n%peopleSlots] {
			who.say()
		}
		p.mu.Unlock()
	}
}

func (w *person) say() {
	if w.quiet.Load() {
		return
	}
	h := w.packet[:headerBytes]
	binary.BigEndian.PutUint16(h[2:], binary.BigEndian.Uint16(h[2:])+1)
	binary.BigEndian.PutUint32(h[4:], binary.BigEndian.Uint32(h[4:])+frameBytes)
	copy(w.packet[headerBytes:], w.people.script[w.at])
	w.at = (w.at + 1) % len(w.people.script)
	if _, err := w.conn.WriteToUDPAddrPort(w.packet[:], w.remote); err == nil {
		w.people.sent.Add(1)
	}
}

// listen counts packets, those that are missing among them, and looks for the first sound.
func (w *person) listen() {
	packet := make([]byte, 2048)
	for {
		n, _, err := w.conn.ReadFromUDPAddrPort(packet)
		if err != nil {
			return
		}
		if n <= headerBytes || packet[1]&0x7f != 0 {
			continue // keys, and what is no sound
		}
		sequence := binary.BigEndian.Uint16(packet[2:])
		w.people.received.Add(1)
		if gap := int16(sequence - w.last); w.begun && gap > 1 {
			w.people.lost.Add(int64(gap) - 1)
		}
		w.begun, w.last = true, sequence
		if !w.heard.Load() && sounds(packet[headerBytes:n]) {
			w.heard.Store(true)
			w.people.heard(time.Since(w.answered))
		}
	}
}

// sounds says whether coded sound is more than silence.
func sounds(payload []byte) bool {
	for _, b := range payload {
		if ^b&0x7f > 0x20 { // mu-law is stored inverted; without its sign it grows with loudness
			return true
		}
	}
	return false
}

func (p *people) heard(after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silence = append(p.silence, after)
}

// hangUp ends a call.
func (w *person) hangUp(ctx context.Context) error { return w.call.Hangup(ctx) }

// hangUpAll ends everybody's calls.
func (p *people) hangUpAll(ctx context.Context) {
	p.hangUp(ctx, func(*person) bool { return true })
}

// hangUp ends the calls of those who are chosen, a few at a time.
func (p *people) hangUp(ctx context.Context, chosen func(*person) bool) {
	p.mu.Lock()
	var all []*person
	for _, slot := range p.slots {
		for who := range slot {
			if chosen(who) {
				all = append(all, who)
			}
		}
	}
	p.mu.Unlock()
	var some sync.WaitGroup
	for i, who := range all {
		some.Go(func() { _ = who.hangUp(ctx) })
		if i%20 == 19 {
			some.Wait()
		}
	}
	some.Wait()
}

// peopleCounts are what they have counted so far.
type peopleCounts struct {
	Address  string `json:"address"`
	Talking  int    `json:"talking"`
	Invites  int64  `json:"invites"`
	Sent     int64  `json:"sent"`
	Received int64  `json:"received"`
	Lost     int64  `json:"lost"`

	FirstSoundP99 time.Duration `json:"first_sound_p99"`
}

func (p *people) counts() peopleCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := peopleCounts{Address: p.address(), Talking: p.talking, Invites: p.invites.Load(), Sent: p.sent.Load(), Received: p.received.Load(), Lost: p.lost.Load()}
	if len(p.silence) > 0 {
		c.FirstSoundP99 = percentile(p.silence, 0.99)
	}
	return c
}

// benchPeopleCmd is the process of the people. It answers every line it reads with what
// they have counted, and ends with its input.
type benchPeopleCmd struct{}

// question is what they ask, again and again.
const question = "What are your hours?"

// questionEvery is how long a round of the conversation takes.
func questionEvery() time.Duration {
	var p people
	_ = p.render([]string{question}) // the sandbox speaks every sentence
	return time.Duration(len(p.script)) * audio.FrameDuration
}

// Run is the other end of parley bench calls.
func (benchPeopleCmd) Run(ctx context.Context, c console) error {
	p, err := startPeople(question)
	if err != nil {
		return err
	}
	answer := json.NewEncoder(c.out)
	err = answer.Encode(p.counts())
	for lines := bufio.NewScanner(os.Stdin); err == nil && lines.Scan(); err = answer.Encode(p.counts()) {
		if lines.Text() == "hang up" {
			p.hangUpAll(ctx)
		}
	}
	return errors.Join(err, p.close())
}
