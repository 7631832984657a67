package main

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// Messages as JSON, for people who debug a client. Records are shown by the headers of their
// batches, long lists by their first items, and secrets by their size.

const (
	maxDescribedBytes = 64 << 10
	maxDescribedItems = 64
	maxHexBytes       = 32
)

// secretFields are never shown.
var secretFields = []string{"SASLAuthBytes", "Salt", "SaltedPassword", "HMAC"}

// describe is the message as JSON.
func (m *message) describe() json.RawMessage {
	if m.whole == nil {
		return quoted(fmt.Sprintf("%d bytes, too long to show", sizeBytes+m.head.size))
	}
	if err := m.decode(); err != nil {
		return quoted(err.Error())
	}
	text := describeValue(nil, reflect.ValueOf(m.decoded), "")
	if len(text) > maxDescribedBytes {
		return quoted(fmt.Sprintf("%d bytes, too long to show", len(m.whole)))
	}
	return text
}

func quoted(text string) []byte {
	data, _ := json.Marshal(text) // a text always has a JSON form
	return data
}

// describeValue appends the JSON of a value; `name` is the codec's name of its field.
func describeValue(out []byte, value reflect.Value, name string) []byte {
	switch value.Kind() {
	case reflect.Pointer:
		if value.IsNil() {
			return append(out, "null"...)
		}
		return describeValue(out, value.Elem(), name)
	case reflect.Struct:
		return describeFields(out, value)
	case reflect.Array:
		id, _ := textOf(value)
		return append(out, quoted(id)...)
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			return append(out, describeBytes(value.Bytes(), name)...)
		}
		return describeList(out, value, name)
	}
	data, err := json.Marshal(value.Interface())
	if err != nil { // a float that is not a number
		data = quoted(fmt.Sprint(value.Interface()))
	}
	return append(out, data...)
}

func describeFields(out []byte, value reflect.Value) []byte {
	out = append(out, '{')
	isFirst := true
	for at := range value.NumField() {
		field := value.Type().Field(at)
		if !isMessageField(field) {
			continue
		}
		if !isFirst {
			out = append(out, ',')
		}
		isFirst = false
		out = append(append(out, quoted(snakeCase(field.Name))...), ':')
		out = describeValue(out, value.Field(at), field.Name)
	}
	return append(out, '}')
}

func describeList(out []byte, value reflect.Value, name string) []byte {
	out = append(out, '[')
	shown := min(value.Len(), maxDescribedItems)
	for at := range shown {
		if at > 0 {
			out = append(out, ',')
		}
		out = describeValue(out, value.Index(at), name)
	}
	if further := value.Len() - shown; further > 0 {
		out = append(append(out, ','), quoted(fmt.Sprintf("%d more", further))...)
	}
	return append(out, ']')
}

func describeBytes(data []byte, name string) []byte {
	switch {
	case data == nil:
		return []byte("null")
	case name == "Records" || name == "RecordBatches":
		text, _ := json.Marshal(describeBatches(data))
		return text
	case len(data) > maxHexBytes || slices.Contains(secretFields, name):
		return quoted(fmt.Sprintf("%d bytes", len(data)))
	}
	return quoted(hex.EncodeToString(data))
}

// batch is the header of a record batch.
type batch struct {
	FirstOffset     int64  `json:"first_offset"`
	Records         int32  `json:"records"`
	Bytes           int    `json:"bytes"`
	Magic           int8   `json:"magic"`
	LeaderEpoch     int32  `json:"leader_epoch"`
	Compression     string `json:"compression,omitempty"`
	ProducerID      *int64 `json:"producer_id,omitempty"`
	ProducerEpoch   *int16 `json:"producer_epoch,omitempty"`
	FirstSequence   *int32 `json:"first_sequence,omitempty"`
	IsTransactional bool   `json:"transactional,omitempty"`
	IsControl       bool   `json:"control,omitempty"`
}

var compressions = []string{"", "gzip", "snappy", "lz4", "zstd"}

// describeBatches reads the headers. A batch that is cut, as at the end of a Fetch, is left out.
func describeBatches(data []byte) []batch {
	const begin, smallest, headerBytes = 12, 17, 61
	batches := []batch{}
	for len(data) >= smallest && len(batches) < maxDescribedItems {
		whole := begin + int(int32(binary.BigEndian.Uint32(data[8:])))
		if whole < smallest || whole > len(data) {
			break
		}
		one := batch{
			FirstOffset: int64(binary.BigEndian.Uint64(data)), Bytes: whole, Magic: int8(data[16]),
			LeaderEpoch: -1,
		}
		if one.Magic >= 2 && whole >= headerBytes {
			one.readHeader(data)
		}
		batches = append(batches, one)
		data = data[whole:]
	}
	return batches
}

func (b *batch) readHeader(data []byte) {
	b.LeaderEpoch = int32(binary.BigEndian.Uint32(data[12:]))
	attributes := binary.BigEndian.Uint16(data[21:])
	if codec := int(attributes & 7); codec < len(compressions) {
		b.Compression = compressions[codec]
	}
	b.IsTransactional, b.IsControl = attributes&0x10 != 0, attributes&0x20 != 0
	b.Records = int32(binary.BigEndian.Uint32(data[57:]))
	if id := int64(binary.BigEndian.Uint64(data[43:])); id >= 0 {
		epoch := int16(binary.BigEndian.Uint16(data[51:]))
		sequence := int32(binary.BigEndian.Uint32(data[53:]))
		b.ProducerID, b.ProducerEpoch, b.FirstSequence = &id, &epoch, &sequence
	}
}
