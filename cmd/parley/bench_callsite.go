package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"parley"
	"parley/internal/audio"
	"parley/internal/media"
	"parley/internal/sip"
)

// callSite is a whole Parley in this process, and the people it calls in another.
type callSite struct {
	ground
	server    *server
	token     string
	assistant parley.ID
	peer      *peopleProcess
	hold      sync.WaitGroup // the calls of media only
	end       chan struct{}
	up        int
}

// openCallSite starts the product as it is served, but for the limits of an account.
func openCallSite(ctx context.Context, calls int) (s *callSite, err error) {
	s = &callSite{token: parley.NewSecret(), end: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
			s = nil
		}
	}()
	if _, err = s.take(ctx, benchDatabase{name: "SQLite"}); err != nil {
		return s, err
	}
	if s.peer, err = startPeopleProcess(); err != nil {
		return s, err
	}
	config := &Config{HTTP: "127.0.0.1:0", Data: s.dir, Token: s.token, Log: "error", StopTimeoutSec: 60}
	config.SIP, config.RTPPorts, config.MaxCalls = "127.0.0.1:0", "16384-32767", calls
	if err = config.validate(); err != nil {
		return s, err
	}
	config.trunk = &parley.Trunk{ID: defaultTrunkID, Address: s.peer.address, Transport: "udp", CallingFormat: "+e164"}
	if s.server, err = start(ctx, config, console{io.Discard, os.Stderr}); err != nil {
		return s, err
	}
	s.assistant, err = s.hire(ctx)
	return s, err
}

// close ends the calls, the server and the people.
func (s *callSite) close() (err error) {
	close(s.end)
	if s.peer != nil {
		err = s.peer.hangUp()
	}
	s.hold.Wait()
	if s.server != nil {
		err = errors.Join(err, s.server.stop())
	}
	if s.peer != nil {
		err = errors.Join(err, s.peer.close())
	}
	return errors.Join(err, s.leave())
}

func (s *callSite) media() *media.Engine { return s.server.exchange.media }

// hire makes the assistant, which knows the answer to the people's question.
func (s *callSite) hire(ctx context.Context) (parley.ID, error) {
	var answer struct {
		Data struct {
			ID parley.ID `json:"id"`
		} `json:"data"`
	}
	err := s.post(ctx, "/api/user/assistant", `{"assistant_name":"Bench","calls_direction":"make","engine_type":"pipeline","voice_id":1,"language":"English","llm_model":"sandbox",
		"timezone":"UTC","initial_message":"Hello, this is Acme, what can I do for you?","system_prompt":"When asked about hours, say: We open at nine in the morning and close at six in the evening.",
		"record_call":true,"max_call_duration":1200}`, &answer)
	return answer.Data.ID, err
}

func (s *callSite) post(ctx context.Context, path, body string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.server.listener.Addr().String()+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Close = true // nothing stays open behind the bench
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusMultipleChoices {
		raw, _ := io.ReadAll(response.Body)
		return fmt.Errorf("%s answered %s: %s", path, response.Status, raw)
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// openConversations brings the number of calls up to n, by the API.
func (s *callSite) openConversations(ctx context.Context, n int) error {
	for ; s.up < n; s.up++ {
		var answer struct{}
		body := fmt.Sprintf(`{"assistant_id":%d,"phone_number":"+4930%07d"}`, s.assistant, s.up)
		if err := s.post(ctx, "/api/user/make_call", body, &answer); err != nil {
			return err
		}
		if s.up%10 == 9 { // no faster than it can dial
			if err := s.await(ctx, s.up-50); err != nil {
				return err
			}
		}
	}
	return s.await(ctx, n)
}

// openMedia brings the number of calls without a conversation up to n: they play a
// sentence again and again.
func (s *callSite) openMedia(ctx context.Context, n int) error {
	for ; s.up < n; s.up++ {
		call, session, err := s.mediaCall(ctx)
		if err != nil {
			return err
		}
		s.hold.Go(func() {
			<-s.end
			<-call.Done()
			session.Close()
		})
	}
	return s.await(ctx, n)
}

func (s *callSite) mediaCall(ctx context.Context) (*sip.Call, *media.Session, error) {
	session, err := s.media().Open(netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		return nil, nil, err
	}
	local := session.Local()
	call, err := s.server.exchange.agent.Dial(ctx, *s.server.config.trunk, sip.Outgoing{
		To: "+4930123456", Media: sip.Media{Address: local.Addr(), Port: local.Port(), Codecs: []sip.Codec{sip.PCMU()}},
	})
	if err != nil {
		session.Close()
		return nil, nil, err
	}
	frame := make([]int16, audio.Rate8k.FrameSamples())
	for i := range frame {
		frame[i] = int16(i % 40 * 200) // a loud buzz: silence might be cheaper
	}
	err = session.Start(media.Params{Codec: media.PCMU, Rate: audio.Rate8k, Remote: call.Session().Remote}, media.Callbacks{Frame: func([]int16) { session.Send(frame) }})
	return call, session, err
}

// connectWithin is how long calls may take to connect.
const connectWithin = 2 * time.Minute

// await waits until so many of the people talk.
func (s *callSite) await(ctx context.Context, n int) error {
	deadline := time.Now().Add(connectWithin)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		counts, err := s.peer.counts()
		if err != nil || counts.Talking >= n {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("only %d of %d calls connected", counts.Talking, n)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// peopleProcess is the other end in a process of its own.
type peopleProcess struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	address string
}

func startPeopleProcess() (*peopleProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &peopleProcess{command: exec.Command(self, "bench", "people")} //nolint:gosec,noctx // this program itself; it ends with its input
	p.command.Stderr = os.Stderr
	if p.in, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	first, err := p.read()
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.address = first.Address
	return p, nil
}

func (p *peopleProcess) read() (c peopleCounts, err error) {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return c, fmt.Errorf("the people of the bench are gone: %w", err)
	}
	return c, json.Unmarshal(line, &c)
}

func (p *peopleProcess) counts() (peopleCounts, error) { return p.ask("counts") }

func (p *peopleProcess) hangUp() error {
	_, err := p.ask("hang up")
	return err
}

func (p *peopleProcess) ask(what string) (peopleCounts, error) {
	if _, err := io.WriteString(p.in, what+"\n"); err != nil {
		return peopleCounts{}, err
	}
	return p.read()
}

func (p *peopleProcess) close() error {
	return errors.Join(p.in.Close(), p.command.Wait())
}
