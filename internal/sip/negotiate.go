package sip

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/pion/sdp/v3"
)

// Offer writes our description as an offer (RFC 3264 section 5).
func Offer(local Media) []byte {
	m := describe(local, local.codecs(), len(local.Crypto) > 0)
	for _, key := range local.Crypto {
		m.WithValueAttribute("crypto", key.String())
	}
	m.WithPropertyAttribute("rtcp-mux")
	return marshal(local, m)
}

// Accept reads the answer to our offer (RFC 3264 section 7).
func Accept(answer []byte, local Media) (Session, error) {
	d, err := parseSDP(answer)
	if err != nil {
		return Session{}, err
	}
	if len(d.MediaDescriptions) == 0 {
		return Session{}, ErrNoAudio
	}
	line, err := readAudio(d, 0) // the answer has the offer's lines in the offer's order
	if err != nil {
		return Session{}, err
	}
	if line.secure != (len(local.Crypto) > 0) {
		return Session{}, ErrNoAudio
	}
	// RFC 3264 section 7: the answer's order decides what we send.
	s, err := line.agree(local, line.codecs)
	if err != nil {
		return s, err
	}
	if ours, ok := find(local.codecs(), s.Event); ok {
		s.EventHeard = ours.Payload // what we offered is what we are sent
	}
	if !line.secure {
		return s, nil
	}
	// RFC 4568 section 5.1.3: the answer's one key carries the tag it chose.
	for _, theirs := range line.keys {
		for _, ours := range local.Crypto {
			if ours.Tag == theirs.Tag && ours.Suite == theirs.Suite {
				s.SendKey, s.RecvKey = &ours, &theirs
				return s, nil
			}
		}
	}
	return Session{}, ErrNoAudio
}

// Answer answers an offer (RFC 3264 section 6): the first audio line that fits is
// taken, every other line is refused with port 0, none is left out.
func Answer(offer []byte, local Media) ([]byte, Session, error) {
	d, err := parseSDP(offer)
	if err != nil {
		return nil, Session{}, err
	}
	line, session, err := choose(d, local)
	if err != nil {
		return nil, Session{}, err
	}
	lines := make([]*sdp.MediaDescription, len(d.MediaDescriptions))
	for i, m := range d.MediaDescriptions {
		if i == line.index {
			lines[i] = answerLine(local, line, session)
			continue
		}
		name := m.MediaName
		name.Port = sdp.RangedPort{}
		lines[i] = &sdp.MediaDescription{MediaName: name}
	}
	return marshal(local, lines...), session, nil
}

// Inspect reads the peer's side of an offer without answering it.
func Inspect(offer []byte) (Session, error) {
	d, err := parseSDP(offer)
	if err != nil {
		return Session{}, err
	}
	_, s, err := choose(d, Media{Address: netip.IPv6Unspecified()})
	return s, err
}

func choose(d *sdp.SessionDescription, local Media) (audioLine, Session, error) {
	why := ErrNoAudio
	for i := range d.MediaDescriptions {
		line, err := readAudio(d, i)
		if err != nil {
			why = moreTelling(why, err)
			continue
		}
		if line.secure && len(line.keys) == 0 {
			continue
		}
		// RFC 3264 section 6.1 recommends the offer's order unless there is a reason: ours
		// is what a call costs.
		s, err := line.agree(local, local.codecs())
		if err != nil {
			why = moreTelling(why, err)
			continue
		}
		if line.secure {
			theirs := line.keys[0]
			ours := NewCrypto(theirs.Tag, theirs.Suite)
			for _, kept := range local.Crypto { // a re-offer keeps the key in use
				if kept.Tag == theirs.Tag && kept.Suite == theirs.Suite {
					ours = kept
				}
			}
			s.SendKey, s.RecvKey = &ours, &theirs
		}
		return line, s, nil
	}
	return audioLine{}, Session{}, why
}

// moreTelling keeps the first error that says more than "no audio".
func moreTelling(kept, err error) error {
	if kept == ErrNoAudio { //nolint:errorlint // identity is meant
		return err
	}
	return kept
}

// agree finds what both sides have, the first of an order.
func (line audioLine) agree(local Media, order []Codec) (Session, error) {
	s := Session{
		Remote: line.connected, RTCP: line.rtcp, RTCPMux: line.mux, Ptime: line.ptime,
		Direction: local.Direction.within(line.direction.reversed()),
	}
	if s.Ptime == 0 {
		s.Ptime = 20 * time.Millisecond // RFC 3551 section 4.2
	}
	for _, wanted := range order {
		ours, have := find(local.codecs(), wanted)
		theirs, has := find(line.codecs, wanted)
		theirs.Name = ours.Name // theirs may be written in small letters
		switch {
		case !have || !has:
		case theirs.isEvent():
			s.Event, s.EventHeard = theirs, theirs.Payload
		case s.Codec.Name == "":
			s.Codec = theirs
		}
	}
	if s.Codec.Name == "" {
		return Session{}, ErrNoCodec
	}
	return s, nil
}

func (local Media) codecs() []Codec {
	if len(local.Codecs) == 0 {
		return Codecs()
	}
	return local.Codecs
}

func answerLine(local Media, line audioLine, s Session) *sdp.MediaDescription {
	codecs := []Codec{s.Codec}
	if s.Event.Name != "" {
		codecs = append(codecs, s.Event)
	}
	local.Direction = s.Direction
	local.Ptime = s.Ptime
	m := describe(local, codecs, line.secure)
	if s.SendKey != nil {
		m.WithValueAttribute("crypto", s.SendKey.String())
	}
	if line.mux { // RFC 5761 section 5.1.1: only when offered
		m.WithPropertyAttribute("rtcp-mux")
	}
	return m
}

func describe(local Media, codecs []Codec, secure bool) *sdp.MediaDescription {
	m := &sdp.MediaDescription{MediaName: sdp.MediaName{
		Media: "audio", Port: sdp.RangedPort{Value: int(local.Port)}, Protos: []string{"RTP", "AVP"},
	}}
	if secure {
		m.MediaName.Protos[1] = "SAVP"
	}
	for _, c := range codecs {
		payload := strconv.Itoa(int(c.Payload))
		m.MediaName.Formats = append(m.MediaName.Formats, payload)
		m.WithValueAttribute("rtpmap", payload+" "+c.Name+"/"+strconv.Itoa(c.Rate))
		if c.isEvent() {
			m.WithValueAttribute("fmtp", payload+" 0-16")
		}
	}
	ptime := local.Ptime
	if ptime == 0 {
		ptime = 20 * time.Millisecond
	}
	m.WithValueAttribute("ptime", strconv.FormatInt(ptime.Milliseconds(), 10))
	direction := local.Direction
	if direction == "" {
		direction = SendRecv
	}
	m.WithPropertyAttribute(string(direction))
	return m
}

func marshal(local Media, lines ...*sdp.MediaDescription) []byte {
	family := "IP4"
	if local.Address.Is6() && !local.Address.Is4In6() {
		family = "IP6"
	}
	address := strings.TrimPrefix(local.Address.Unmap().WithZone("").String(), "invalid IP")
	if address == "" {
		address = "0.0.0.0"
	}
	d := sdp.SessionDescription{
		Origin: sdp.Origin{Username: "-", SessionID: local.ID, SessionVersion: local.Version,
			NetworkType: "IN", AddressType: family, UnicastAddress: address},
		SessionName:           "-",
		ConnectionInformation: &sdp.ConnectionInformation{NetworkType: "IN", AddressType: family, Address: &sdp.Address{Address: address}},
		TimeDescriptions:      []sdp.TimeDescription{{}},
		MediaDescriptions:     lines,
	}
	out, err := d.Marshal()
	if err != nil { // cannot happen: every field is ours
		return nil
	}
	return out
}
