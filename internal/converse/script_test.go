package converse

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley"
	"parley/internal/audio"
)

// A scene is a call as a script: what the customer does when, how the providers
// behave, and afterwards what was heard when. It runs in virtual time. Times are
// since the answer.
type scene struct {
	assistant func(*parley.Assistant)
	config    func(*Config)
	customer  []says
	digits    map[time.Duration]byte
	hangUp    time.Duration // 0: the customer stays until `until`
	until     time.Duration // the call is stopped then; default 60 s
	ring      time.Duration // from Run to the answer; default 2 s

	words   wording
	model   func(Prompt) answer
	speaker speaking
	tools   map[string]func(context.Context, map[string]any) (string, error)
	beepAt  time.Duration
	noise   func(frame []int16) // on the customer's line
}

// says is a stretch of the customer's voice; without words it is a cough.
type says struct {
	from, to time.Duration
	words    string
}

// wording is how the scripted transcriber behaves.
type wording struct {
	final   time.Duration // from Flush to the final words
	partial time.Duration // from a word to its partial transcript; 0: no partials
	damaged bool          // part of it could not be understood
	fault   func(open int) fault
}

// answer is what the scripted model does.
type answer struct {
	first time.Duration // to the first token
	token time.Duration // between tokens
	text  string
	calls []ToolCall
	fault fault
}

// speaking is how the scripted speaker behaves. Each word lasts word.
type speaking struct {
	first   time.Duration
	word    time.Duration
	untimed bool // no word times
	fault   func(text string, request int) fault
}

// fault is a way to fail.
type fault int

const (
	sound   fault = iota
	errs          // returns an error
	stalls        // nothing comes, ever
	half          // some comes, then nothing, ever
	garbage       // what comes makes no sense
)

var errScripted = errors.New("scripted failure")

const ms = time.Millisecond

// baseAssistant has the defaults of a new assistant.
func baseAssistant() parley.Assistant {
	return parley.Assistant{ID: 12, Name: "Front desk", Mode: parley.Pipeline, Type: parley.Outbound, Settings: parley.Settings{
		Language: "English", Timezone: "Europe/Berlin", InitialMessage: "Hello from Acme.", SystemPrompt: "You are brief.",
		EndpointType: "vad", EndpointSensitivity: 1, AllowInterruptions: true, InterruptSensitivity: 0.5, UseMinInterruptWords: true,
		ReengagementInterval: 30, MaxSilenceDuration: 40, MaxDuration: 600, AmbientSound: "off", SpeechSpeed: 1, VoiceStability: 0.7, VoiceSimilarity: 0.5, LLMTemperature: 0.1,
	}}
}

// outcome is what came of a scene.
type outcome struct {
	Result
	heard  []heardWord // what the customer heard of the assistant, word by word
	events []Event
	hungUp time.Duration
	sent   string // digits
	frames int
	model  *scriptModel
	voice  *scriptSpeaker
	ears   *scriptTranscriber
}

type heardWord struct {
	text     string
	id       int
	from, to time.Duration
}

// said is everything that was heard, as text.
func (o *outcome) said() string {
	var words []string
	for i, w := range o.heard {
		if i == 0 || w.id != o.heard[i-1].id {
			words = append(words, w.text)
		}
	}
	return strings.Join(words, " ")
}

// spans are the stretches of sound, ending where 200 ms of silence begin.
func (o *outcome) spans() [][2]time.Duration {
	var out [][2]time.Duration
	for _, w := range o.heard {
		if n := len(out); n > 0 && w.from-out[n-1][1] < 200*ms {
			out[n-1][1] = w.to
			continue
		}
		out = append(out, [2]time.Duration{w.from, w.to})
	}
	return out
}

// at is when a text began to be heard, or -1.
func (o *outcome) at(text string) time.Duration {
	want := strings.Fields(text)
	for i := range o.heard {
		if i+len(want) > len(o.heard) {
			break
		}
		match := true
		for j, w := range want {
			match = match && o.heard[i+j].text == w
		}
		if match {
			return o.heard[i].from
		}
	}
	return -1
}

// play runs the scene in a bubble of its own.
func (s scene) play(t *testing.T) *outcome {
	t.Helper()
	var out *outcome
	synctest.Test(t, func(t *testing.T) { out = s.run(t) })
	return out
}

// run runs the scene in the bubble it is called in.
func (s scene) run(t testing.TB) *outcome {
	t.Helper()
	if s.until == 0 {
		s.until = time.Minute
	}
	if s.ring == 0 {
		s.ring = 2 * time.Second
	}
	out := &outcome{}
	line := &scriptLine{out: out}
	out.ears = &scriptTranscriber{script: s.customer, wording: s.words}
	out.model = &scriptModel{answer: s.model}
	out.voice = &scriptSpeaker{speaking: s.speaker, line: line}
	line.voice = out.voice
	cfg := Config{
		Assistant: baseAssistant(), Rate: audio.Rate8k, Line: line,
		Call:         Facts{CallID: "call-1", CustomerPhone: "+12025550100", AssistantPhone: "+4930123456", Direction: parley.Outbound},
		Transcribers: []Provider[Transcriber]{{Name: "ears", Key: "ear-1", Use: out.ears}},
		Models:       []Provider[Model]{{Name: "mind", Key: "mind-1", Use: out.model}},
		Speakers:     []Provider[Speaker]{{Name: "voice", Key: "voice-1", Use: out.voice}},
		RunTool: func(ctx context.Context, name string, arguments map[string]any) (string, error) {
			return s.tools[name](ctx, arguments)
		},
		Watch: func(e Event) { out.events = append(out.events, e) },
	}
	cfg.senses.own, cfg.senses.sent = func([]int16) bool { return false }, func([]int16) {}
	cfg.senses.voice = func(frame []int16) bool { return frame[0] == voicedMark }
	cfg.senses.beep = func(frame []int16) bool { return frame[0] == beepMark }
	if s.assistant != nil {
		s.assistant(&cfg.Assistant)
	}
	if s.config != nil {
		s.config(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Error(err)
		return out
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		out.Result = c.Run(t.Context())
	}()
	time.Sleep(s.ring)
	line.mu.Lock()
	line.answered = time.Now()
	line.mu.Unlock()
	c.Answered()
	s.telephone(c, line)
	<-done
	out.frames = line.frames
	return out
}

const (
	voicedMark = 9000
	beepMark   = 7000
)

// telephone is the media side: one frame each way per 20 ms until the call is over.
func (s scene) telephone(c *Conversation, line *scriptLine) {
	frame := make([]int16, 160)
	keys := sortedKeys(s.digits)
	next := time.Now()
	from := 0 // stretches before it are over
	for at := 20 * ms; !line.isDown(); at += 20 * ms {
		next = next.Add(20 * ms)
		time.Sleep(time.Until(next))
		clear(frame)
		if s.noise != nil {
			s.noise(frame)
		}
		for from < len(s.customer) && s.customer[from].to < at {
			from++
		}
		for i := from; i < len(s.customer) && s.customer[i].from < at; i++ {
			v := s.customer[i]
			if v.from <= at-20*ms && at <= v.to {
				count := len(strings.Fields(v.words))
				frame[0], frame[1] = voicedMark, int16(i+1)
				frame[2] = int16(int64(count) * int64(at-v.from) / int64(v.to-v.from))
			}
		}
		if s.beepAt > 0 && at-20*ms <= s.beepAt && s.beepAt < at {
			frame[0] = beepMark
		}
		for len(keys) > 0 && keys[0] <= at {
			c.Digit(s.digits[keys[0]])
			keys = keys[1:]
		}
		c.Frame(frame)
		if s.hangUp > 0 && at >= s.hangUp {
			c.HungUp()
			return
		}
		if at >= s.until {
			c.Stop(EndStopped)
			return
		}
	}
}

func sortedKeys(m map[time.Duration]byte) []time.Duration {
	keys := make([]time.Duration, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// scriptLine is the customer's ear.
type scriptLine struct {
	mu       sync.Mutex
	out      *outcome
	voice    *scriptSpeaker
	answered time.Time
	down     bool
	frames   int
	transfer func(string) error
}

func (l *scriptLine) isDown() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.down
}

// Send notes which words the frame holds. Each sample of the scripted voice names
// its word.
func (l *scriptLine) Send(frame []int16) {
	l.frames++
	now := time.Since(l.answered)
	for i, v := range frame {
		if v == 0 {
			continue
		}
		at := now + audio.Rate8k.Duration(i)
		if n := len(l.out.heard); n > 0 && l.out.heard[n-1].id == int(v) && at-l.out.heard[n-1].to < ms {
			l.out.heard[n-1].to = at + audio.Rate8k.Duration(1)
			continue
		}
		l.out.heard = append(l.out.heard, heardWord{l.voice.word(int(v)), int(v), at, at + audio.Rate8k.Duration(1)})
	}
}

func (l *scriptLine) SendDigits(digits string) error {
	l.out.sent += digits
	return nil
}

func (l *scriptLine) Transfer(_ context.Context, number string) error {
	if l.transfer != nil {
		return l.transfer(number)
	}
	return nil
}

func (l *scriptLine) HangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	if !l.answered.IsZero() {
		l.out.hungUp = time.Since(l.answered)
	}
}

// scriptSpeaker says each word as a run of equal samples that name it.
type scriptSpeaker struct {
	speaking
	line  *scriptLine
	mu    sync.Mutex
	words []string
	asked []Utterance
}

func (v *scriptSpeaker) word(id int) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.words[id-1]
}

func (v *scriptSpeaker) Speak(ctx context.Context, u Utterance, emit func(Sound)) error {
	v.mu.Lock()
	v.asked = append(v.asked, u)
	request := len(v.asked)
	v.mu.Unlock()
	f := sound
	if v.fault != nil {
		f = v.fault(u.Text, request)
	}
	if err := sleep(ctx, v.first); err != nil {
		return err
	}
	switch f {
	case errs:
		return errScripted
	case stalls:
		<-ctx.Done()
		return ctx.Err()
	case garbage:
		emit(Sound{})
		return nil
	}
	words := strings.Fields(u.Text)
	if f == half {
		words = words[:len(words)/2]
	}
	length := v.speaking.word
	if length == 0 {
		length = 300 * ms
	}
	for i, w := range words {
		emit(v.sound(w, i, length))
	}
	if f == half {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (v *scriptSpeaker) sound(word string, i int, length time.Duration) Sound {
	v.mu.Lock()
	v.words = append(v.words, word)
	id := int16(len(v.words))
	v.mu.Unlock()
	samples := make([]int16, audio.Rate8k.Samples(length))
	for j := range samples {
		samples[j] = id
	}
	s := Sound{Samples: samples}
	if !v.untimed {
		s.Words = []SpokenWord{{word, time.Duration(i) * length, time.Duration(i+1) * length}}
	}
	return s
}

// scriptModel answers as the script says.
type scriptModel struct {
	answer func(Prompt) answer
	mu     sync.Mutex
	asked  []Prompt
}

func (m *scriptModel) prompts() []Prompt {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

func (m *scriptModel) Reply(ctx context.Context, p Prompt, emit func(Delta)) (Usage, error) {
	m.mu.Lock()
	m.asked = append(m.asked, p)
	m.mu.Unlock()
	a := answer{text: "I see."}
	if m.answer != nil {
		a = m.answer(p)
	}
	if err := sleep(ctx, a.first); err != nil {
		return Usage{InputTokens: 10}, err
	}
	switch a.fault {
	case errs:
		return Usage{InputTokens: 10}, errScripted
	case stalls:
		<-ctx.Done()
		return Usage{}, ctx.Err()
	case garbage:
		emit(Delta{Text: "\xff\xfe \x00 ***"})
		return Usage{}, nil
	}
	pieces := strings.SplitAfter(a.text, " ")
	for i, piece := range pieces {
		if a.fault == half && i > len(pieces)/2 {
			<-ctx.Done()
			return Usage{}, ctx.Err()
		}
		if i > 0 {
			if err := sleep(ctx, a.token); err != nil {
				return Usage{InputTokens: 10, OutputTokens: i}, err
			}
		}
		emit(Delta{Text: piece})
	}
	for _, call := range a.calls {
		emit(Delta{ToolCall: &call})
	}
	return Usage{InputTokens: 10, OutputTokens: len(pieces)}, nil
}

// scriptTranscriber reads the words that the script put into the frames.
type scriptTranscriber struct {
	wording
	script []says
	mu     sync.Mutex
	opened int
	asked  ListenOptions
}

func (e *scriptTranscriber) Listen(ctx context.Context, o ListenOptions, hear func(Heard)) (Listener, error) {
	e.mu.Lock()
	e.opened++
	e.asked = o
	f := sound
	if e.fault != nil {
		f = e.fault(e.opened)
	}
	e.mu.Unlock()
	if f == errs {
		return nil, errScripted
	}
	return &scriptListener{e: e, hear: hear, fault: f, from: map[int]int{}}, nil
}

// scriptListener is one stream. Its script may name words once per stretch.
type scriptListener struct {
	e      *scriptTranscriber
	hear   func(Heard)
	fault  fault
	mu     sync.Mutex
	closed bool
	seg    int
	count  int
	done   string      // words of earlier stretches since the last final
	from   map[int]int // words of a stretch that are already final
	frames int
}

func (l *scriptListener) Write(frame []int16) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frames++
	if l.fault == garbage && l.frames == 100 {
		l.later(0, Heard{Text: "\x00\xff\n"})
	}
	if frame[0] != voicedMark {
		return nil
	}
	seg, count := int(frame[1]), int(frame[2])
	if seg != l.seg {
		l.done = strings.TrimSpace(l.done + " " + l.words())
		l.seg, l.count = seg, 0
	}
	if count != l.count {
		l.count = count
		if l.e.partial > 0 {
			l.later(l.e.partial, Heard{Text: l.text()})
		}
	}
	return nil
}

func (l *scriptListener) words() string {
	if l.seg == 0 {
		return ""
	}
	fields := strings.Fields(l.e.script[l.seg-1].words)
	return strings.Join(fields[min(l.from[l.seg], l.count):l.count], " ")
}

func (l *scriptListener) text() string { return strings.TrimSpace(l.done + " " + l.words()) }

func (l *scriptListener) later(after time.Duration, h Heard) {
	if l.fault == stalls || l.fault == half && l.frames > 150 {
		return
	}
	time.AfterFunc(after, func() {
		l.mu.Lock()
		closed := l.closed
		l.mu.Unlock()
		if !closed {
			l.hear(h)
		}
	})
}

func (l *scriptListener) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.text()
	l.done = ""
	l.from[l.seg] = l.count
	l.later(l.e.final, Heard{Text: text, Final: true, Damaged: l.e.damaged})
	return nil
}

func (l *scriptListener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return nil
}

// sleep waits in virtual time.
func sleep(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lastWords are the customer's last words in a prompt.
func lastWords(p Prompt) string {
	for _, m := range slices.Backward(p.Messages) {
		if m.Role == RoleCustomer {
			return m.Text
		}
	}
	return ""
}

// says answers everything with one text.
func always(text string, first time.Duration) func(Prompt) answer {
	return func(Prompt) answer { return answer{first: first, text: text} }
}

func (l *scriptLine) since() time.Duration { return time.Since(l.answered) }
