package switchboard_test

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/stretchr/testify/require"

	"parley"
	"parley/internal/audio"
	"parley/internal/sip"
	"parley/internal/store/storetest"
	"parley/internal/switchboard"
)

// handset is a telephone of bare datagrams, which presses keys when a test wants it.
type handset struct {
	socket   *net.UDPConn
	to       netip.AddrPort
	event    uint8 // payload type
	ssrc     uint32
	sequence uint16
	stamp    uint32
}

func newHandset(offer *sip.Session) (*handset, error) {
	socket, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(loopback, 0)))
	if err != nil {
		return nil, err
	}
	return &handset{socket: socket, to: offer.Remote, event: offer.Event.Payload, ssrc: 7, sequence: 100, stamp: 1000}, nil
}

func (h *handset) media() sip.Media {
	at := socketAddress(h.socket)
	return sip.Media{Address: at.Addr(), Port: at.Port(), Codecs: []sip.Codec{sip.PCMU(), sip.TelephoneEvent()}}
}

func socketAddress(socket *net.UDPConn) netip.AddrPort {
	address, _ := socket.LocalAddr().(*net.UDPAddr)
	return address.AddrPort()
}

func (h *handset) send(kind uint8, stamp uint32, payload []byte) {
	h.sequence++
	packet := rtp.Packet{Header: rtp.Header{Version: 2, PayloadType: kind, SSRC: h.ssrc, SequenceNumber: h.sequence, Timestamp: stamp}, Payload: payload}
	datagram, _ := packet.Marshal()
	_, _ = h.socket.WriteToUDPAddrPort(datagram, h.to)
}

// sound sends 20 ms of silence.
func (h *handset) sound() {
	h.stamp += 160
	silence := make([]byte, 160)
	audio.EncodeMuLaw(silence, make([]int16, 160))
	h.send(0, h.stamp, silence)
}

// press is a key of 40 ms: an update, and its end three times (RFC 4733 2.5.1.4), a packet
// in 20 ms, each followed by what goes on beside it.
func (h *handset) press(key byte, beside func()) {
	h.stamp += 160
	tick := time.NewTicker(audio.FrameDuration)
	defer tick.Stop()
	for i := range 4 {
		code, _ := audio.DTMFEvent(key)
		payload := make([]byte, audio.EventSize)
		audio.Event{Code: code, End: i > 0, Volume: 8, Duration: uint16(160 * min(i+1, 2))}.Put(payload)
		h.send(h.event, h.stamp, payload)
		beside()
		<-tick.C
	}
	h.stamp += 320
}

// goesOn sends silence until the call is over.
func (h *handset) goesOn(over <-chan struct{}) {
	tick := time.NewTicker(audio.FrameDuration)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
			h.sound()
		}
	}
}

// Whoever presses a key as soon as they have picked up is understood, however the key
// and the answer find their way.
func TestNoKeyIsLostAfterTheAnswer(t *testing.T) {
	t.Parallel()
	nothing := func() {}
	answers := func(in *sip.Incoming, h *handset) (*sip.Call, error) { return in.Answer(h.media(), sip.Hooks{}) }
	for _, c := range []struct {
		what  string
		takes func(context.Context, *sip.Incoming, *handset) (*sip.Call, error)
	}{
		{"the key overtakes the answer", func(_ context.Context, in *sip.Incoming, h *handset) (*sip.Call, error) {
			h.press('9', nothing)
			return answers(in, h)
		}},
		{"the key comes with the answer", func(_ context.Context, in *sip.Incoming, h *handset) (*sip.Call, error) {
			call, err := answers(in, h)
			h.press('9', nothing)
			return call, err
		}},
		{"from behind a NAT", func(_ context.Context, in *sip.Incoming, h *handset) (*sip.Call, error) {
			media := h.media()
			media.Port = 9 // as the telephone knows itself
			call, err := in.Answer(media, sip.Hooks{})
			h.press('9', nothing)
			return call, err
		}},
		{"from behind a NAT, overtaking the answer", func(_ context.Context, in *sip.Incoming, h *handset) (*sip.Call, error) {
			media := h.media()
			media.Port = 9
			h.press('9', nothing)
			return in.Answer(media, sip.Hooks{})
		}},
		{"as a stream of its own beside the sound", func(ctx context.Context, in *sip.Incoming, h *handset) (*sip.Call, error) {
			call, err := answers(in, h)
			talked, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			defer cancel()
			h.goesOn(talked.Done())
			keys := *h
			keys.ssrc, keys.sequence = 8, 4000
			keys.press('9', h.sound)
			return call, err
		}},
		{"by SIP INFO, with the answer", func(ctx context.Context, in *sip.Incoming, h *handset) (*sip.Call, error) {
			call, err := answers(in, h)
			if err == nil {
				err = call.SendDigit(ctx, '9', 100*time.Millisecond)
			}
			return call, err
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			o := openOffice(t, storetest.Open(t, storetest.SQLite(t)), func(c *switchboard.Config) { c.OptOut = '9' })
			trunk := o.trunk(o.user, newPeer(t, func(ctx context.Context, in *sip.Incoming) {
				h, err := newHandset(in.Offer)
				if err != nil {
					return
				}
				defer h.socket.Close()
				call, err := c.takes(ctx, in, h)
				if err != nil {
					t.Errorf("%s: %v", c.what, err)
					return
				}
				h.goesOn(call.Done())
			}), 10)
			for range 5 {
				id := o.asksBy(&parley.Call{CustomerNumber: "+4930123456", Carrier: parley.CarrierTrunk, TrunkID: &trunk.ID})
				got := o.awaits(id, "an end, or silence", func(c *parley.Call) bool {
					return c.Status.Final() || c.AnsweredAt != nil && time.Since(*c.AnsweredAt) > 10*time.Second
				})
				require.True(t, got.OptedOut, got.Status)
				require.NoError(t, o.db.Tenant(o.user.ID).RemoveDoNotCall(t.Context(), "+4930123456"))
			}
		})
	}
}
