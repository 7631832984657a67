package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// exchanges is a request of every API and version with random content, and its answer.
type sample struct {
	key, version    int16
	request, answer []byte
}

func samples(random *rand.Rand, rounds int) []sample {
	var made []sample
	for range rounds {
		for key := int16(0); key <= maxAPIKey; key++ {
			request := kmsg.RequestForKey(key)
			if request == nil {
				continue
			}
			for version := int16(0); version <= request.MaxVersion(); version++ {
				made = append(made, newSample(random, key, version, int32(len(made))))
			}
		}
	}
	return made
}

func newSample(random *rand.Rand, key, version int16, correlation int32) sample {
	request, answer := kmsg.RequestForKey(key), kmsg.ResponseForKey(key)
	fill(random, reflect.ValueOf(request), 0)
	fill(random, reflect.ValueOf(answer), 0)
	request.SetVersion(version)
	answer.SetVersion(version)
	clientID := "client"
	head := binary.BigEndian.AppendUint16(make([]byte, sizeBytes), uint16(key))
	head = binary.BigEndian.AppendUint16(head, uint16(version))
	head = binary.BigEndian.AppendUint32(head, uint32(correlation))
	if key != 7 || version > 0 {
		head = binary.BigEndian.AppendUint16(head, uint16(len(clientID)))
		head = append(head, clientID...)
	}
	if request.IsFlexible() {
		head = append(head, 0)
	}
	begin := binary.BigEndian.AppendUint32(make([]byte, sizeBytes), uint32(correlation))
	if answer.IsFlexible() && key != apiVersions {
		begin = append(begin, 0)
	}
	return sample{key, version, sized(request.AppendTo(head)), sized(answer.AppendTo(begin))}
}

func sized(frame []byte) []byte {
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-sizeBytes))
	return frame
}

// fill puts random values into a message.
func fill(random *rand.Rand, value reflect.Value, depth int) {
	switch value.Kind() {
	case reflect.Pointer:
		if depth == 0 || random.Intn(4) > 0 {
			if value.IsNil() {
				value.Set(reflect.New(value.Type().Elem()))
			}
			fill(random, value.Elem(), depth+1)
		}
	case reflect.Struct:
		for at := range value.NumField() {
			field := value.Type().Field(at)
			if field.IsExported() && field.Name != "Version" && field.Name != "UnknownTags" {
				fill(random, value.Field(at), depth+1)
			}
		}
	case reflect.Slice:
		count := random.Intn(4)
		value.Set(reflect.MakeSlice(value.Type(), count, count))
		for at := range count {
			fill(random, value.Index(at), depth+1)
		}
	case reflect.Array:
		for at := range value.Len() {
			fill(random, value.Index(at), depth+1)
		}
	case reflect.String:
		value.SetString([]string{"", "orders", "a-b", "grüße"}[random.Intn(4)])
	case reflect.Bool:
		value.SetBool(random.Intn(2) == 0)
	default:
		if value.CanInt() {
			value.SetInt(int64(random.Intn(200) - 50))
		} else if value.CanUint() {
			value.SetUint(uint64(random.Intn(200)))
		}
	}
}

// play sends requests and answers through a connection in chunks of random sizes, and returns
// what comes out.
func play(random *rand.Rand, l *link, requests, answers []byte) (out [2][]byte, sides [2]*side) {
	sides = [2]*side{l.newSide(true), l.newSide(false)}
	for which, data := range [2][]byte{requests, answers} {
		for len(data) > 0 {
			count := min(len(data), 1+random.Intn(1+random.Intn(3000)))
			sides[which].splitter.feed(append([]byte(nil), data[:count]...), sides[which])
			data = data[count:]
		}
		sides[which].splitter.flush(sides[which])
		for _, one := range sides[which].queue {
			out[which] = append(out[which], one.data...)
		}
	}
	return out, sides
}

func newLink(t *testing.T, rules ...string) *link {
	t.Helper()
	table := newRuleTable()
	for _, text := range rules {
		made, err := newRule([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := table.add(made); err != nil {
			t.Fatal(err)
		}
	}
	return &link{name: "client->b1", rules: table}
}

func TestFramesOfEveryAPIAndVersionPassUntouched(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	all := samples(random, 14)
	if 2*len(all) < 10_000 {
		t.Fatalf("%d samples only", len(all))
	}
	var requests, answers []byte
	for _, one := range all {
		requests = append(requests, one.request...)
		answers = append(answers, one.answer...)
	}
	recorder := `{"name": "r", "direction": "request", "act": "record", "times": 0}`
	for _, l := range []*link{newLink(t), newLink(t, recorder)} {
		out, sides := play(random, l, requests, answers)
		if !bytes.Equal(out[0], requests) || !bytes.Equal(out[1], answers) {
			t.Fatal("bytes changed")
		}
		if left := len(sides[0].conn.pending); left > 0 || l.counts.unread.Load() > 0 {
			t.Fatalf("%d requests without an answer, unread: %d", left, l.counts.unread.Load())
		}
	}
}

func TestEveryMessageIsWrittenAsItWasRead(t *testing.T) {
	for _, one := range samples(rand.New(rand.NewSource(2)), 12) {
		head := header{apiKey: one.key, version: one.version}
		for isRequest, whole := range map[bool][]byte{true: one.request, false: one.answer} {
			read := newMessage(isRequest, &frame{header: head}, whole)
			if err := read.decode(); err != nil {
				t.Errorf("%s %d (request: %v): %v", kmsg.NameForKey(one.key), one.version, isRequest, err)
			} else if !bytes.Equal(read.encode(), whole) {
				t.Errorf("%s %d changed", kmsg.NameForKey(one.key), one.version)
			}
		}
	}
}

func TestContentThatIsNoKafkaPassesUntouchedAndIsCounted(t *testing.T) {
	random := rand.New(rand.NewSource(3))
	rule := `{"name": "r", "direction": "request", "act": "drop", "times": 0}`
	for range 2000 {
		garbage := make([]byte, 1+random.Intn(300))
		random.Read(garbage)
		garbage[0] = byte(0x11 + random.Intn(0xee)) // a size above every request's
		l := newLink(t, rule)
		out, _ := play(random, l, garbage, garbage)
		if !bytes.Equal(out[0], garbage) {
			t.Fatalf("request bytes changed: %x", garbage)
		}
		if len(garbage) >= sizeBytes && l.counts.unread.Load() != 1 {
			t.Fatalf("%x: unread %d", garbage, l.counts.unread.Load())
		}
	}
}

func FuzzBytesPassUntouched(f *testing.F) {
	f.Add([]byte{0, 0, 0, 10, 0, 3, 0, 1, 0, 0, 0, 7, 0xff, 0xff}, int64(1))
	f.Add([]byte{0x16, 3, 1, 2, 0, 1, 0, 1}, int64(2))
	f.Fuzz(func(t *testing.T, data []byte, seed int64) {
		l := newLink(t)
		out, _ := play(rand.New(rand.NewSource(seed)), l, data, data)
		if !bytes.Equal(out[0], data) || !bytes.Equal(out[1], data) {
			t.Fatalf("%x became %x and %x", data, out[0], out[1])
		}
	})
}

func TestMessagesAreDescribedWithoutSecretsAndRecords(t *testing.T) {
	random := rand.New(rand.NewSource(4))
	for _, one := range samples(random, 1) {
		head := header{apiKey: one.key, version: one.version}
		for isRequest, whole := range map[bool][]byte{true: one.request, false: one.answer} {
			if text := newMessage(isRequest, &frame{header: head}, whole).describe(); !json.Valid(text) {
				t.Fatalf("%s %d: %s", kmsg.NameForKey(one.key), one.version, text)
			}
		}
	}
	secret := kmsg.NewPtrSASLAuthenticateRequest()
	secret.SASLAuthBytes = []byte("\x00alice\x00alice-secret")
	if text := describeValue(nil, reflect.ValueOf(secret), ""); string(text) != `{"saslauth_bytes":"19 bytes"}` {
		t.Fatalf("%s", text)
	}
	batch := kmsg.RecordBatch{
		Length: 49, PartitionLeaderEpoch: 3, Magic: 2, Attributes: 0x12, ProducerID: 7, FirstSequence: 40,
		NumRecords: 5,
	}
	described, err := json.Marshal(describeBatches(batch.AppendTo(nil)))
	if err != nil || string(described) != `[{"first_offset":0,"records":5,"bytes":61,"magic":2,"leader_epoch":3,`+
		`"compression":"snappy","producer_id":7,"producer_epoch":0,"first_sequence":40,"transactional":true}]` {
		t.Fatalf("%s %v", described, err)
	}
}

func TestEventsForTheirReadersAreBoundedInNumberAndBytes(t *testing.T) {
	table := newRuleTable()
	message := json.RawMessage(`"` + strings.Repeat("x", 60<<10) + `"`)
	for range 1000 {
		table.report(event{Message: message})
	}
	events, next := table.since(0, 0)
	if next != 1000 || len(events) >= 1000 || table.eventBytes > maxEventBytes {
		t.Fatalf("%d events, %d bytes, next %d", len(events), table.eventBytes, next)
	}
}
