package media

import "encoding/binary"

const (
	headerSize = 12
	// packetMost is the most that is read of a datagram: an Ethernet frame's worth.
	// Longer ones are no telephone audio.
	packetMost = 1500

	versionBits   = 2 << 6
	versionMask   = 3 << 6
	paddingBit    = 1 << 5
	extensionBit  = 1 << 4
	csrcMask      = 0x0f
	markerBit     = 1 << 7
	typeMask      = 0x7f
	csrcSize      = 4
	extensionHead = 4
)

// packet is an RTP packet (RFC 3550 5.1). pion's header would allocate for
// contributing sources and extensions, of which nothing is used here.
type packet struct {
	payloadType uint8
	marker      bool
	sequence    uint16
	timestamp   uint32
	ssrc        uint32
	payload     []byte // part of what was parsed
}

// parsePacket reads a packet and says whether it is one. Contributing sources,
// header extension and padding are passed over.
func parsePacket(b []byte) (packet, bool) {
	if len(b) < headerSize || b[0]&versionMask != versionBits {
		return packet{}, false
	}
	p := packet{
		payloadType: b[1] & typeMask,
		marker:      b[1]&markerBit != 0,
		sequence:    binary.BigEndian.Uint16(b[2:]),
		timestamp:   binary.BigEndian.Uint32(b[4:]),
		ssrc:        binary.BigEndian.Uint32(b[8:]),
	}
	start := headerSize + csrcSize*int(b[0]&csrcMask)
	if b[0]&extensionBit != 0 {
		if len(b) < start+extensionHead {
			return packet{}, false
		}
		start += extensionHead + 4*int(binary.BigEndian.Uint16(b[start+2:]))
	}
	end := len(b)
	if b[0]&paddingBit != 0 {
		padding := int(b[end-1])
		if padding == 0 {
			return packet{}, false
		}
		end -= padding
	}
	if start > end {
		return packet{}, false
	}
	p.payload = b[start:end]
	return p, true
}

// putHeader writes the header of a packet without extras to the first twelve
// octets of b.
func (p *packet) putHeader(b []byte) {
	b[0] = versionBits
	b[1] = p.payloadType
	if p.marker {
		b[1] |= markerBit
	}
	binary.BigEndian.PutUint16(b[2:], p.sequence)
	binary.BigEndian.PutUint32(b[4:], p.timestamp)
	binary.BigEndian.PutUint32(b[8:], p.ssrc)
}

// isRTCP tells the two apart on one port: where an RTP packet has marker and type,
// an RTCP packet has a type from 192 to 223 (RFC 5761 4).
func isRTCP(b []byte) bool { return len(b) >= 2 && b[1] >= 192 && b[1] <= 223 }
