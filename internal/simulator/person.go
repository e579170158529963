package simulator

import (
	"context"
	"strings"
	"sync"

	"parley/internal/audio"
	"parley/internal/converse"
	"parley/internal/media"
	"parley/internal/sip"
)

// person is a callee on the telephone, with the sandbox's ears.
type person struct {
	who    Callee
	voice  converse.Speaker
	manner string // which of the speaker's voices

	mu     sync.Mutex
	lines  []string
	news   bool    // something was heard that has not been answered
	quiet  int     // frames of silence since
	speech []int16 // what is still to be said
	frame  []int16
	leave  func() // nil until the call is connected
}

const (
	// turnFrames is the silence after which a person speaks: half a second.
	turnFrames = 25
	// quietLevel is the loudest that counts as silence, in dBFS.
	quietLevel = -50
)

// live takes a call and lives through it.
func (c *Carrier) live(ctx context.Context, in *sip.Incoming, who Callee) {
	session, err := c.media.Open(loopback)
	if err != nil || in.Offer == nil {
		_ = in.Refuse(503, 0)
		return
	}
	defer session.Close()
	p := &person{who: who, voice: c.speaker, manner: c.manner, lines: who.lines, frame: make([]int16, audio.Rate8k.FrameSamples())}
	ears, err := c.voice.Transcriber().Listen(ctx, converse.ListenOptions{Language: "en", Rate: audio.Rate8k}, p.hear)
	if err != nil {
		_ = in.Refuse(503, 0)
		return
	}
	defer func() { _ = ears.Close() }()
	// A telephone listens before it says that it has been picked up.
	err = session.Start(media.Params{Codec: media.PCMU, Remote: in.Offer.Remote, EventType: in.Offer.Event.Payload}, media.Callbacks{Frame: func(heard []int16) {
		_ = ears.Write(heard)
		session.Send(p.next(heard))
	}})
	if err != nil {
		_ = in.Refuse(488, 0)
		return
	}
	local, over := session.Local(), make(chan struct{})
	call, err := in.Answer(sip.Media{Address: local.Addr(), Port: local.Port(), Codecs: []sip.Codec{sip.PCMU(), sip.TelephoneEvent()}},
		sip.Hooks{Ended: func(sip.End) { close(over) }})
	if err != nil {
		return
	}
	var leaving sync.WaitGroup
	defer leaving.Wait()
	p.connected(sync.OnceFunc(func() { leaving.Go(func() { _ = call.Hangup(context.WithoutCancel(ctx)) }) }))
	<-over
}

func (p *person) connected(leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leave = leave
}

// hear takes what the assistant says, word by word.
func (p *person) hear(h converse.Heard) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h.Text == "" {
		return
	}
	p.news, p.quiet = true, 0
	if p.who.leavesAfter > 0 && p.leave != nil && len(strings.Fields(h.Text)) >= p.who.leavesAfter {
		p.leave()
	}
}

// next is what the person says in this frame: nothing, until the assistant has said
// something and fallen silent.
func (p *person) next(heard []int16) []int16 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if audio.Level(heard) < quietLevel {
		p.quiet++
	} else {
		p.quiet = 0
	}
	if p.news && p.quiet >= turnFrames && len(p.speech) == 0 && len(p.lines) > 0 {
		p.say(p.lines[0])
		p.lines, p.news = p.lines[1:], false
	}
	n := copy(p.frame, p.speech)
	clear(p.frame[n:])
	p.speech = p.speech[n:]
	return p.frame
}

// say renders a line; the sandbox's voice is quick enough to do so in a frame.
func (p *person) say(line string) {
	u := converse.Utterance{Text: line, Voice: p.manner, Language: "en", Rate: audio.Rate8k, Speed: 1}
	_ = p.voice.Speak(context.Background(), u, func(s converse.Sound) { p.speech = append(p.speech, s.Samples...) })
}
