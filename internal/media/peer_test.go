package media

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/stretchr/testify/require"

	"parley/internal/audio"
)

// peer is a bare UDP socket that speaks RTP by pion's hand, not ours.
type peer struct {
	socket *net.UDPConn
	packet rtp.Packet
	tone   *audio.ToneGenerator
	frame  []int16
}

func newPeer(t testing.TB, host netip.Addr, hertz float64) *peer {
	t.Helper()
	socket, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(host, 0)))
	require.NoError(t, err)
	t.Cleanup(func() { socket.Close() })
	return &peer{
		socket: socket,
		packet: rtp.Packet{Header: rtp.Header{Version: 2, SSRC: uint32(randomBelow(1 << 30)), SequenceNumber: 65530}, Payload: make([]byte, frameTicks)},
		tone:   audio.NewSine(audio.Rate8k, hertz, -6),
		frame:  make([]int16, frameTicks),
	}
}

func (p *peer) address() netip.AddrPort {
	address, _ := p.socket.LocalAddr().(*net.UDPAddr)
	return address.AddrPort()
}

// next is the next packet of the tone.
func (p *peer) next() []byte {
	p.tone.Fill(p.frame)
	audio.EncodeMuLaw(p.packet.Payload, p.frame)
	p.packet.SequenceNumber++
	p.packet.Timestamp += frameTicks
	b, err := p.packet.Marshal()
	if err != nil {
		panic(err) // a header of the test's own making
	}
	return b
}

func (p *peer) send(t testing.TB, to netip.AddrPort) {
	t.Helper()
	_, err := p.socket.WriteToUDPAddrPort(p.next(), to)
	require.NoError(t, err)
}

// read is the next RTP packet that arrives here, or none within the time.
func (p *peer) read(t testing.TB, within time.Duration) (rtp.Packet, bool) {
	t.Helper()
	require.NoError(t, p.socket.SetReadDeadline(time.Now().Add(within)))
	buffer := make([]byte, 2000)
	n, _, err := p.socket.ReadFromUDPAddrPort(buffer)
	if err != nil {
		return rtp.Packet{}, false
	}
	var packet rtp.Packet
	require.NoError(t, packet.Unmarshal(buffer[:n]))
	return packet, true
}
