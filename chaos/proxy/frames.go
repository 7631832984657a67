package main

import "encoding/binary"

// Frames of one direction of a connection.
//
// A frame is a size (int32) and so many bytes. A splitter follows the frames through chunks of any
// sizes. For each frame it reports the beginning, as soon as the header is complete, and then the
// frame's bytes, piece by piece and without a copy; bytes of an incomplete header wait for the
// next chunk. Content that is not Kafka makes the splitter blind: all that follows is one piece.

const (
	// maxRequestBytes is above every socket.request.max.bytes in use and below the size that the
	// first bytes of a TLS connection spell.
	maxRequestBytes = 0x10000000
	maxAPIKey       = 95
	maxVersion      = 25
	sizeBytes       = 4
)

// header is what the beginning of a frame says.
type header struct {
	size        int // without the four bytes of the size itself
	apiKey      int16
	version     int16
	correlation int32
	clientID    string
	isRaw       bool // a SASL token without a header
}

// sink receives the frames of a splitter.
type sink interface {
	// begin receives a frame's header before its bytes.
	begin(header)
	// piece receives bytes of the current frame, size and header included. The last piece of a
	// frame is marked.
	piece(data []byte, last bool)
	// unread receives bytes that are not frames.
	unread(data []byte)
}

// splitter follows the frames of one direction.
type splitter struct {
	parse     func([]byte) (header, parsed)
	begun     []byte // an incomplete header
	remaining int    // bytes of the current frame that are still to come
	isBlind   bool
}

type parsed int

const (
	incomplete parsed = iota
	complete
	noFrame
)

func (s *splitter) feed(data []byte, to sink) {
	for len(data) > 0 {
		switch {
		case s.isBlind:
			to.unread(data)
			return
		case s.remaining > 0:
			data = s.pass(data, to)
		default:
			data = s.beginFrame(data, to)
		}
	}
}

// flush hands over an incomplete header at the end of the stream.
func (s *splitter) flush(to sink) {
	if len(s.begun) > 0 {
		to.unread(s.begun)
		s.begun = nil
	}
}

func (s *splitter) pass(data []byte, to sink) []byte {
	count := min(len(data), s.remaining)
	s.remaining -= count
	to.piece(data[:count], s.remaining == 0)
	return data[count:]
}

func (s *splitter) beginFrame(data []byte, to sink) []byte {
	if len(s.begun) > 0 {
		data = append(s.begun, data...)
		s.begun = nil
	}
	head, result := s.parse(data)
	switch result {
	case incomplete:
		s.begun = append([]byte(nil), data...)
		return nil
	case noFrame:
		s.isBlind = true
		return data
	}
	s.remaining = sizeBytes + head.size
	to.begin(head)
	return data
}

// parseRequest reads the header of a request. After SaslHandshake 0, frames of another form are
// SASL tokens.
func parseRequest(mayBeRaw func() bool) func([]byte) (header, parsed) {
	return func(data []byte) (header, parsed) {
		if len(data) < sizeBytes {
			return header{}, incomplete
		}
		size := int(int32(binary.BigEndian.Uint32(data)))
		if size < 0 || size > maxRequestBytes {
			return header{}, noFrame
		}
		head, result := requestHeader(size, data[sizeBytes:])
		if result == noFrame && mayBeRaw() {
			return header{size: size, isRaw: true}, complete
		}
		return head, result
	}
}

func requestHeader(size int, data []byte) (header, parsed) {
	const fixed = 10
	if size < 8 {
		return header{}, noFrame
	}
	if len(data) < min(size, fixed) {
		return header{}, incomplete
	}
	head := header{
		size:        size,
		apiKey:      int16(binary.BigEndian.Uint16(data)),
		version:     int16(binary.BigEndian.Uint16(data[2:])),
		correlation: int32(binary.BigEndian.Uint32(data[4:])),
	}
	if head.apiKey < 0 || head.apiKey > maxAPIKey || head.version < 0 || head.version > maxVersion {
		return header{}, noFrame
	}
	if size < fixed {
		return head, complete // ControlledShutdown 0 has no client id
	}
	length := int(int16(binary.BigEndian.Uint16(data[8:])))
	if length < -1 || length > size-fixed {
		if head.apiKey == 7 && head.version == 0 {
			return head, complete
		}
		return header{}, noFrame
	}
	if length > 0 {
		if len(data) < fixed+length {
			return header{}, incomplete
		}
		head.clientID = string(data[fixed : fixed+length])
	}
	return head, complete
}

// parseAnswer reads the header of an answer. SASL tokens may be empty.
func parseAnswer(isRaw func() bool) func([]byte) (header, parsed) {
	return func(data []byte) (header, parsed) {
		if len(data) < sizeBytes {
			return header{}, incomplete
		}
		size := int(int32(binary.BigEndian.Uint32(data)))
		if size < 0 {
			return header{}, noFrame
		}
		if isRaw() {
			return header{size: size, isRaw: true}, complete
		}
		if size < 4 {
			return header{}, noFrame
		}
		if len(data) < sizeBytes+4 {
			return header{}, incomplete
		}
		return header{size: size, correlation: int32(binary.BigEndian.Uint32(data[4:]))}, complete
	}
}
