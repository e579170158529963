package sip

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/pion/sdp/v3"
)

// Media is our side of a call's audio, as plain values from the owner of the socket.
type Media struct {
	Address   netip.Addr
	Port      uint16
	Codecs    []Codec // in order of preference; empty means all
	Ptime     time.Duration
	Direction Direction
	Crypto    []Crypto // keys to offer: makes an offer RTP/SAVP
	ID        uint64   // of the session (RFC 4566 section 5.2)
	Version   uint64   // rises with every new description of the same session
}

// Session is what two sides agreed on.
type Session struct {
	Remote    netip.AddrPort // invalid while the peer names no address (old-style hold)
	RTCP      netip.AddrPort
	RTCPMux   bool
	Codec     Codec
	Event     Codec // telephone-event as we send it; Name is "" when not agreed
	Ptime     time.Duration
	Direction Direction // ours
	SendKey   *Crypto   // SRTP: what we encrypt with; nil for plain RTP
	RecvKey   *Crypto

	EventHeard byte // payload type of the telephone-events that come
}

// settle is our side after an agreement: a later offer keeps the key in use, and asks
// for none where none was agreed on.
func (m Media) settle(s Session) Media {
	m.Crypto = nil
	if s.SendKey != nil {
		m.Crypto = []Crypto{*s.SendKey}
	}
	return m
}

// Held says that the peer has put us on hold: it takes no audio.
func (s Session) Held() bool { return !s.Direction.Sends() }

// The ways a description can fail to fit. Each is answered with 488 (RFC 3261 21.4.26).
var (
	ErrNoAudio       = errors.New("sdp: no usable audio")
	ErrNoCodec       = errors.New("sdp: no codec in common")
	ErrBadSDP        = errors.New("sdp: cannot be read")
	ErrBadConnection = errors.New("sdp: no usable address")
)

// maxSDP bounds the work a stranger's description can cause; real ones are below 4 KB.
const maxSDP = 32 << 10

func parseSDP(body []byte) (*sdp.SessionDescription, error) {
	if len(body) == 0 || len(body) > maxSDP {
		return nil, ErrBadSDP
	}
	d := &sdp.SessionDescription{}
	if err := d.Unmarshal(body); err != nil {
		return nil, errors.Join(ErrBadSDP, err)
	}
	return d, nil
}

// audioLine is one m=audio of a description, understood.
type audioLine struct {
	index     int
	secure    bool
	connected netip.AddrPort
	rtcp      netip.AddrPort
	mux       bool
	codecs    []Codec
	ptime     time.Duration
	direction Direction // the writer's
	keys      []Crypto
}

// readAudio understands one media section, or says why it cannot be used.
func readAudio(d *sdp.SessionDescription, index int) (audioLine, error) {
	m := d.MediaDescriptions[index]
	line := audioLine{index: index}
	if m.MediaName.Media != "audio" || m.MediaName.Port.Value == 0 {
		return line, ErrNoAudio
	}
	switch strings.ToUpper(strings.Join(m.MediaName.Protos, "/")) {
	case "RTP/AVP", "RTP/AVPF":
	case "RTP/SAVP", "RTP/SAVPF":
		line.secure = true
	default:
		return line, ErrNoAudio
	}
	var err error
	if line.connected, err = connection(d, m); err != nil {
		return line, err
	}
	line.codecs = readCodecs(m)
	line.readAttributes(d, m)
	return line, nil
}

// connection is the address audio goes to: the media's own c= wins over the session's
// (RFC 4566 section 5.7). An unspecified address is RFC 2543 hold and gives no address.
func connection(d *sdp.SessionDescription, m *sdp.MediaDescription) (netip.AddrPort, error) {
	c := m.ConnectionInformation
	if c == nil {
		c = d.ConnectionInformation
	}
	if c == nil || c.Address == nil {
		return netip.AddrPort{}, ErrBadConnection
	}
	address, err := netip.ParseAddr(c.Address.Address)
	if err != nil || address.IsMulticast() || address.Zone() != "" {
		return netip.AddrPort{}, ErrBadConnection
	}
	if m.MediaName.Port.Value < 0 || m.MediaName.Port.Value > 65535 {
		return netip.AddrPort{}, ErrBadConnection
	}
	if address.IsUnspecified() {
		return netip.AddrPort{}, nil
	}
	return netip.AddrPortFrom(address.Unmap(), uint16(m.MediaName.Port.Value)), nil
}

func readCodecs(m *sdp.MediaDescription) (codecs []Codec) {
	maps := map[string]string{}
	for _, a := range m.Attributes {
		if a.Key == "rtpmap" {
			payload, format, _ := strings.Cut(a.Value, " ")
			maps[payload] = strings.TrimSpace(format)
		}
	}
	for _, format := range m.MediaName.Formats {
		payload, err := strconv.ParseUint(format, 10, 7) // RFC 3550 section 5.1: seven bits
		if err != nil {
			continue
		}
		if text, ok := maps[format]; ok {
			if codec, ok := readRTPMap(byte(payload), text); ok {
				codecs = append(codecs, codec)
			}
		} else if codec, ok := staticCodec(byte(payload)); ok {
			codecs = append(codecs, codec)
		}
	}
	return codecs
}

func readRTPMap(payload byte, text string) (Codec, bool) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) == 3 && strings.TrimSpace(parts[2]) != "1" || len(parts) > 3 {
		return Codec{}, false // more than one channel is not telephony
	}
	rate, err := strconv.Atoi(strings.TrimSpace(parts[1]))
	if err != nil {
		return Codec{}, false
	}
	return Codec{Payload: payload, Name: strings.TrimSpace(parts[0]), Rate: rate}, true
}

func (line *audioLine) readAttributes(d *sdp.SessionDescription, m *sdp.MediaDescription) {
	line.direction = SendRecv
	line.rtcp = nextPort(line.connected) // RFC 3550 section 11
	// The session's attributes are defaults for its media (RFC 4566 section 5.13).
	for _, a := range d.Attributes {
		line.readDirection(a.Key)
	}
	for _, a := range m.Attributes {
		line.readDirection(a.Key)
		switch a.Key {
		case "rtcp-mux":
			line.mux = true
		case "rtcp":
			line.readRTCP(a.Value)
		case "ptime":
			if ms, err := strconv.Atoi(strings.TrimSpace(a.Value)); err == nil && ms >= 10 && ms <= 200 {
				line.ptime = time.Duration(ms) * time.Millisecond
			}
		case "crypto":
			if key, err := parseCrypto(a.Value); err == nil {
				line.keys = append(line.keys, key)
			}
		}
	}
	if !line.connected.IsValid() { // RFC 3264 section 8.4: 0.0.0.0 takes no audio
		line.direction = directionOf(line.direction.Sends(), false)
	}
	if line.mux {
		line.rtcp = line.connected
	}
}

func (line *audioLine) readDirection(key string) {
	switch d := Direction(key); d {
	case SendRecv, SendOnly, RecvOnly, Inactive:
		line.direction = d
	}
}

// readRTCP reads a=rtcp:PORT [IN IP4 ADDRESS] (RFC 3605).
func (line *audioLine) readRTCP(value string) {
	fields := strings.Fields(value)
	if len(fields) == 0 || !line.connected.IsValid() {
		return
	}
	port, err := strconv.ParseUint(fields[0], 10, 16)
	if err != nil || port == 0 {
		return
	}
	address := line.connected.Addr()
	if len(fields) == 4 {
		if a, err := netip.ParseAddr(fields[3]); err == nil && !a.IsMulticast() && !a.IsUnspecified() && a.Zone() == "" {
			address = a.Unmap()
		}
	}
	line.rtcp = netip.AddrPortFrom(address, uint16(port))
}

func nextPort(a netip.AddrPort) netip.AddrPort {
	if !a.IsValid() || a.Port() == 65535 {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.Addr(), a.Port()+1)
}
