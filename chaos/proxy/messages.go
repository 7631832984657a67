package main

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// body is what requests and answers have in common.
type body interface {
	SetVersion(int16)
	IsFlexible() bool
	AppendTo([]byte) []byte
	ReadFrom([]byte) error
}

// message is a whole frame, decoded when a rule needs it.
type message struct {
	isRequest bool
	head      header
	whole     []byte
	begin     int // of the body
	decoded   body
}

func newMessage(isRequest bool, f *frame, whole []byte) *message {
	return &message{isRequest: isRequest, head: f.header, whole: whole}
}

func emptyBody(key int16, isRequest bool) body {
	if isRequest {
		if made := kmsg.RequestForKey(key); made != nil {
			return made
		}
		return nil
	}
	if made := kmsg.ResponseForKey(key); made != nil {
		return made
	}
	return nil
}

// decode reads the message. It fails where the codec would not write the same bytes again.
func (m *message) decode() error {
	if m.decoded != nil {
		return nil
	}
	made := emptyBody(m.head.apiKey, m.isRequest)
	if made == nil {
		return fmt.Errorf("api key %d is unknown", m.head.apiKey)
	}
	made.SetVersion(m.head.version)
	begin, err := m.headerEnd(made.IsFlexible())
	if err != nil {
		return err
	}
	if err := made.ReadFrom(m.whole[begin:]); err != nil {
		return m.failure(err)
	}
	if !bytes.Equal(made.AppendTo(nil), m.whole[begin:]) {
		return m.failure(fmt.Errorf("it would not be written as it was read"))
	}
	m.begin, m.decoded = begin, made
	return nil
}

func (m *message) failure(err error) error {
	name := kmsg.NameForKey(m.head.apiKey)
	return fmt.Errorf("%s version %d cannot be read: %w", name, m.head.version, err)
}

// headerEnd is where the body begins.
func (m *message) headerEnd(isFlexible bool) (int, error) {
	at := sizeBytes + 4
	if m.isRequest {
		at = sizeBytes + 8
		if m.head.apiKey != 7 || m.head.version > 0 {
			if len(m.whole) < at+2 {
				return 0, m.failure(fmt.Errorf("no client id"))
			}
			length := int(int16(binary.BigEndian.Uint16(m.whole[at:])))
			at += 2 + max(0, length)
		}
	}
	hasTags := isFlexible && (m.isRequest || m.head.apiKey != apiVersions)
	if !hasTags {
		return at, nil
	}
	end, err := skipTags(m.whole, at)
	if err != nil {
		return 0, m.failure(err)
	}
	return end, nil
}

func skipTags(data []byte, at int) (int, error) {
	count, at, err := uvarint(data, at)
	for range count {
		if err == nil {
			_, at, err = uvarint(data, at)
		}
		var size int
		if err == nil {
			size, at, err = uvarint(data, at)
		}
		at += size
	}
	if err != nil || at > len(data) {
		return 0, fmt.Errorf("the header's tags do not end")
	}
	return at, nil
}

func uvarint(data []byte, at int) (int, int, error) {
	if at > len(data) {
		return 0, at, fmt.Errorf("out of bytes")
	}
	value, count := binary.Uvarint(data[at:])
	if count <= 0 || value > uint64(len(data)) {
		return 0, at, fmt.Errorf("out of bytes")
	}
	return int(value), at + count, nil
}

// encode writes the frame with its decoded body.
func (m *message) encode() []byte {
	frame := append([]byte(nil), m.whole[:m.begin]...)
	frame = m.decoded.AppendTo(frame)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-sizeBytes))
	return frame
}

// matches says whether every path has its value somewhere in the message.
func (m *message) matches(fields map[string]any) (bool, error) {
	if err := m.decode(); err != nil {
		return false, err
	}
	for path, value := range fields {
		if !hasValue(m.decoded, path, value) {
			return false, nil
		}
	}
	return true, nil
}

// withError is the frame with an error code at the path, or in place of every error code.
func (m *message) withError(path string, code int16) ([]byte, error) {
	if err := m.decode(); err != nil {
		return nil, err
	}
	var err error
	if path == "" {
		err = setErrors(m.decoded, code)
	} else {
		err = setField(m.decoded, path, float64(code))
	}
	if err != nil {
		return nil, m.failure(err)
	}
	return m.encode(), nil
}

// withField is the frame with another value at the path.
func (m *message) withField(path string, value any) ([]byte, error) {
	if err := m.decode(); err != nil {
		return nil, err
	}
	if err := setField(m.decoded, path, value); err != nil {
		return nil, m.failure(err)
	}
	return m.encode(), nil
}
