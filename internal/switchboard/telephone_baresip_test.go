package switchboard

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/audio"
	"parley/internal/sip"
	"parley/internal/sip/siptest"
)

const (
	ourNumber   = "+12025550180"
	theirNumber = "+12025550123"
)

// baresip is Debian's softphone: a peer that is not our own code. It plays theirTone
// out of a file, writes what it hears to another, and is driven over its control port.
type baresip struct {
	t       *testing.T
	folder  string
	port    int // UDP and TCP; TLS is on the next
	control net.Conn
	events  chan baresipEvent
	log     *os.File
}

type baresipEvent struct {
	Type  string `json:"type"`
	Param string `json:"param"`
	Peer  string `json:"peeruri"`
}

// softphone is how a baresip is set up.
type softphone struct {
	account     string // parameters of its account
	codecs      string // module of its codecs; g711 when empty
	certificate string // a PEM file, for TLS
}

func startBaresip(t *testing.T, s softphone) *baresip {
	t.Helper()
	b := &baresip{t: t, folder: t.TempDir(), port: siptest.Ports(t), events: make(chan baresipEvent, 64)}
	control := siptest.Ports(t)
	b.configure(s, control)
	var err error
	b.log, err = os.Create(filepath.Join(b.folder, "log"))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	command := exec.CommandContext(ctx, siptest.Baresip(t), "-4", "-v", "-f", b.folder)
	command.Stdout, command.Stderr = b.log, b.log
	require.NoError(t, command.Start())
	t.Cleanup(func() {
		_ = command.Process.Signal(os.Interrupt)
		_ = command.Wait()
		cancel()
		_ = b.log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(b.log.Name())
			t.Logf("baresip:\n%s", text)
		}
	})
	eventually(t, "baresip is ready", func() bool {
		b.control, err = net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(control)))
		return err == nil
	})
	listened := make(chan struct{})
	go func() { defer close(listened); b.listen() }()
	t.Cleanup(func() { _ = b.control.Close(); <-listened })
	return b
}

func (b *baresip) configure(s softphone, control int) {
	b.t.Helper()
	if s.codecs == "" {
		s.codecs = "g711"
	}
	rate := lineRate
	if s.codecs == "g722" {
		rate = audio.Rate16k
	}
	lines := []string{
		fmt.Sprintf("sip_listen 127.0.0.1:%d", b.port), "net_interface 127.0.0.1", "jitter_buffer_delay 1-5",
		"audio_source aufile," + filepath.Join(b.folder, "tone.wav"), "snd_path " + b.folder, "module_path /usr/lib/baresip/modules",
		"module " + s.codecs + ".so", "module aufile.so", "module sndfile.so", "module srtp.so",
		"module_app account.so", "module_app menu.so", "module_app ctrl_tcp.so", fmt.Sprintf("ctrl_tcp_listen 127.0.0.1:%d", control),
	}
	if s.certificate != "" {
		lines = append(lines, "sip_certificate "+s.certificate, "sip_cafile "+s.certificate)
	}
	account := fmt.Sprintf("<sip:%s@127.0.0.1>;regint=0%s\n", theirNumber, s.account)
	for name, text := range map[string]string{"config": strings.Join(lines, "\n") + "\n", "accounts": account, "contacts": "", "uuid": ""} {
		require.NoError(b.t, os.WriteFile(filepath.Join(b.folder, name), []byte(text), 0o600))
	}
	b.writeTone(rate)
}

// writeTone records a minute of theirTone, longer than any test.
func (b *baresip) writeTone(rate audio.Rate) {
	b.t.Helper()
	file, err := os.Create(filepath.Join(b.folder, "tone.wav"))
	require.NoError(b.t, err)
	defer file.Close()
	tone := make([]int16, 60*int(rate))
	audio.NewSine(rate, theirTone, -12).Fill(tone)
	n := uint32(2 * len(tone))
	header := []any{[]byte("RIFF"), n + 36, []byte("WAVEfmt "), uint32(16), uint16(1), uint16(1), uint32(rate), uint32(2 * rate), uint16(2), uint16(16), []byte("data"), n, tone}
	for _, part := range header {
		require.NoError(b.t, binary.Write(file, binary.LittleEndian, part))
	}
}

// listen takes the netstrings of the control port: answers and events.
func (b *baresip) listen() {
	r := bufio.NewReader(b.control)
	for {
		length, err := r.ReadString(':')
		if err != nil {
			return
		}
		n, err := strconv.Atoi(strings.TrimSuffix(length, ":"))
		if err != nil {
			return
		}
		text := make([]byte, n+1)
		if _, err := io.ReadFull(r, text); err != nil {
			return
		}
		var e baresipEvent
		if json.Unmarshal(text[:n], &e) == nil && e.Type != "" {
			b.events <- e
		}
	}
}

// do gives a command.
func (b *baresip) do(command, argument string) {
	b.t.Helper()
	text, err := json.Marshal(map[string]string{"command": command, "params": argument})
	require.NoError(b.t, err)
	_, err = fmt.Fprintf(b.control, "%d:%s,", len(text), text)
	require.NoError(b.t, err)
}

// dial calls a station.
func (b *baresip) dial(s *station, network string) {
	b.t.Helper()
	b.do("dial", fmt.Sprintf("sip:%s@%s;transport=%s", ourNumber, s.agent.Addr(network), network))
}

// await waits for an event, and passes over others.
func (b *baresip) await(kind string) baresipEvent {
	b.t.Helper()
	for {
		if e := get(b.t, b.events, kind+" of baresip"); e.Type == kind {
			return e
		}
	}
}

// pressed are the keys that baresip has heard.
func (b *baresip) pressed(n int) (keys string) {
	b.t.Helper()
	for len(keys) < n {
		keys += b.await("CALL_DTMF_START").Param
	}
	return keys
}

// recorded is what baresip has heard until the first hold, which ends its recording.
// The file is whole when the call is over.
func (b *baresip) recorded() []int16 {
	b.t.Helper()
	b.await("CALL_CLOSED")
	var heard []int16
	eventually(b.t, "a recording", func() bool {
		names, _ := filepath.Glob(filepath.Join(b.folder, "dump-*-dec.wav"))
		if len(names) == 0 {
			return false
		}
		file, err := os.Open(names[0])
		require.NoError(b.t, err)
		defer file.Close()
		stat, err := file.Stat()
		require.NoError(b.t, err)
		wav, err := audio.OpenWAV(file, stat.Size())
		if err != nil || wav.Repaired() { // its header is finished last
			return false
		}
		all := make([]int16, wav.Frames())
		_, err = wav.ReadFrames(0, all)
		heard = heard[:0]
		for i := 0; i < len(all); i += int(wav.Rate() / lineRate) {
			heard = append(heard, all[i])
		}
		return err == nil || errors.Is(err, io.EOF)
	})
	return heard
}

func (b *baresip) trunk(network string) parley.Trunk {
	port := b.port
	if network == "tls" {
		port++
	}
	return parley.Trunk{ID: 2, Address: "127.0.0.1:" + strconv.Itoa(port), Transport: network, CallingFormat: "+e164"}
}

// A call with baresip, placed by either side: each hears the other's tone, keys go both
// ways, baresip holds and resumes, and hangs up.
func TestBaresipTalks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		network string
		phone   softphone
		codec   string
		secure  bool
		holds   bool
	}{
		"plain":              {network: "udp", codec: "PCMU", holds: true},
		"over TCP":           {network: "tcp", codec: "PCMU"},
		"SRTP over TLS":      {network: "tls", phone: softphone{account: ";mediaenc=srtp-mand"}, codec: "PCMU", secure: true, holds: true},
		"SRTP where it asks": {network: "udp", phone: softphone{account: ";mediaenc=srtp-mand"}, codec: "PCMU", secure: true},
		"G.722 only":         {network: "udp", phone: softphone{codecs: "g722"}, codec: "G722"},
	} {
		for _, ours := range []bool{true, false} {
			direction := "it calls"
			if ours {
				direction = "we call"
			}
			if ours && name == "SRTP where it asks" {
				continue // without TLS we offer no keys
			}
			t.Run(name+", "+direction, func(t *testing.T) {
				t.Parallel()
				tls, file := identity(t)
				phone := c.phone // both directions share the case
				phone.certificate = file
				phone.account += ";answermode=auto"
				b := startBaresip(t, phone)
				s := newStation(t, c.network, tls, nil)
				var k *talk
				if ours {
					k = s.dial(b.trunk(c.network))
				} else {
					b.dial(s, c.network)
					k = get(t, s.talks, "call of baresip")
				}
				b.await("CALL_ESTABLISHED")
				require.Equal(t, c.codec, k.call.Session().Codec.Name)
				require.Equal(t, c.secure, k.call.Session().SendKey != nil)
				talkWith(t, b, k)
				if c.holds {
					holdWith(t, b, k)
				}
				b.do("hangup", "")
				require.Equal(t, sip.EndedByPeer, get(t, k.ended, "end").By)
				heard := b.recorded()
				require.Greater(t, len(heard), int(lineRate)/4)
				require.Greater(t, share(heard, ourTone), 0.6, "baresip has recorded our tone")
			})
		}
	}
}

// talkWith has both sides hear each other and press keys.
func talkWith(t *testing.T, b *baresip, k *talk) {
	t.Helper()
	eventually(t, "we hear baresip", k.hears(theirTone))
	require.NoError(t, k.session.SendDigits("15#"))
	require.Equal(t, "15#", b.pressed(3))
	b.do("sndcode", "42*")
	eventually(t, "its keys", func() bool { return k.keys() == "42*" })
}

// holdWith has each side hold the other, and come back.
func holdWith(t *testing.T, b *baresip, k *talk) {
	t.Helper()
	b.do("hold", "")
	eventually(t, "it holds us", k.onHold)
	eventually(t, "silence", k.hears(0))
	b.do("resume", "")
	eventually(t, "it is back", func() bool { return !k.onHold() })
	eventually(t, "we hear baresip again", k.hears(theirTone))

	s, err := k.call.Hold(t.Context())
	require.NoError(t, err)
	require.False(t, s.Direction.Receives())
	eventually(t, "it obeys our hold", k.hears(0))
	_, err = k.call.Resume(t.Context())
	require.NoError(t, err)
	eventually(t, "we hear baresip once more", k.hears(theirTone))
	require.NoError(t, k.session.SendDigits("7"))
	require.Equal(t, "7", b.pressed(1), "it hears us, too")
}

// What becomes of calls that are not answered, both ways.
func TestBaresipIsBusyOrRings(t *testing.T) {
	t.Parallel()
	dial := func(s *station, b *baresip, ring time.Duration) *sip.Failure {
		k := s.open()
		_, err := s.agent.Dial(s.within(), b.trunk("udp"), sip.Outgoing{To: theirNumber, From: ourNumber, Media: k.offer(b.trunk("udp")), RingTimeout: ring})
		var failure *sip.Failure
		require.ErrorAs(s.t, err, &failure)
		return failure
	}
	t.Run("it is busy", func(t *testing.T) {
		t.Parallel()
		b, s := startBaresip(t, softphone{}), newStation(t, "udp", nil, nil)
		go func() {
			for e := range b.events {
				if e.Type == "CALL_INCOMING" {
					b.do("hangup", "")
					return
				}
			}
		}()
		failure := dial(s, b, 0)
		require.Equal(t, 486, failure.Status)
		require.Equal(t, sip.Busy, failure.Outcome)
	})
	t.Run("we cancel", func(t *testing.T) {
		t.Parallel()
		b, s := startBaresip(t, softphone{}), newStation(t, "udp", nil, nil)
		require.Equal(t, sip.NoAnswer, dial(s, b, 500*time.Millisecond).Outcome)
		b.await("CALL_INCOMING")
		b.await("CALL_CLOSED")
	})
	t.Run("we are busy", func(t *testing.T) {
		t.Parallel()
		b := startBaresip(t, softphone{})
		s := newStation(t, "udp", nil, func(_ *station, _ context.Context, in *sip.Incoming) { _ = in.Refuse(486, 0) })
		b.dial(s, "udp")
		require.Contains(t, b.await("CALL_CLOSED").Param, "486")
	})
	t.Run("it cancels", func(t *testing.T) {
		t.Parallel()
		b, gone := startBaresip(t, softphone{}), make(chan error, 1)
		s := newStation(t, "udp", nil, func(_ *station, ctx context.Context, in *sip.Incoming) {
			_ = in.Ring()
			<-ctx.Done()
			_, err := in.Answer(sip.Media{}, sip.Hooks{})
			gone <- err
		})
		b.dial(s, "udp")
		b.await("CALL_RINGING")
		b.do("hangup", "")
		require.ErrorIs(t, get(t, gone, "CANCEL"), sip.ErrCancelled)
	})
}

// A transfer moves baresip to another of our numbers, and it tells us that it arrived.
func TestBaresipIsTransferred(t *testing.T) {
	t.Parallel()
	b := startBaresip(t, softphone{account: ";answermode=auto"})
	s, target := newStation(t, "udp", nil, nil), newStation(t, "udp", nil, nil)
	// The carrier is the target's host; baresip stands before it as an outbound proxy.
	trunk := b.trunk("udp")
	proxy := trunk.Address
	trunk.OutboundProxy, trunk.Address = &proxy, target.agent.Addr("udp").String()
	k := s.dial(trunk)
	b.await("CALL_ESTABLISHED")
	eventually(t, "we hear baresip", k.hears(theirTone))
	moved := make(chan error, 1)
	go func() { moved <- k.call.Transfer(s.within(), "+12025550199") }()
	other := get(t, target.talks, "transferred call")
	require.NoError(t, get(t, moved, "news of the transfer"))
	eventually(t, "the target hears baresip", other.hears(theirTone))
	require.NoError(t, other.call.Hangup(s.within()))
}

// Nobody but the assistant moves a call: a transfer that baresip asks for is declined,
// and nothing is called.
func TestBaresipTransfersInVain(t *testing.T) {
	t.Parallel()
	b := startBaresip(t, softphone{account: ";answermode=auto"})
	s, target := newStation(t, "udp", nil, nil), newStation(t, "udp", nil, nil)
	k := s.dial(b.trunk("udp"))
	b.await("CALL_ESTABLISHED")
	b.do("transfer", "sip:+12025550199@"+target.agent.Addr("udp").String())
	require.Contains(t, b.await("TRANSFER_FAILED").Param, "603")
	require.Equal(t, sip.EndedByPeer, get(t, k.ended, "end").By, "it gives up")
	require.Zero(t, target.agent.Counters().CallsIn)
}
