package main

import (
	"bytes"
	"encoding/binary"
	"math/rand"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// endTxn is an EndTxn request of a transactional id and its answer, without an error.
func endTxn(correlation int32, id string) sample {
	request := kmsg.NewPtrEndTxnRequest()
	request.TransactionalID, request.Version = id, 1
	answer := kmsg.NewPtrEndTxnResponse()
	answer.Version = 1
	head := binary.BigEndian.AppendUint16(make([]byte, sizeBytes), 26)
	head = binary.BigEndian.AppendUint16(head, 1)
	head = binary.BigEndian.AppendUint32(head, uint32(correlation))
	head = append(head, 0, 1, 'c')
	begin := binary.BigEndian.AppendUint32(make([]byte, sizeBytes), uint32(correlation))
	return sample{26, 1, sized(request.AppendTo(head)), sized(answer.AppendTo(begin))}
}

// three requests by two transactional ids, and their answers.
func traffic() (requests, answers []byte, all []sample) {
	all = []sample{endTxn(1, "a"), endTxn(2, "b"), endTxn(3, "a")}
	for _, one := range all {
		requests = append(requests, one.request...)
		answers = append(answers, one.answer...)
	}
	return requests, answers, all
}

func playRule(t *testing.T, text string) (l *link, out [2][]byte, sides [2]*side, all []sample) {
	t.Helper()
	l = newLink(t, text)
	requests, answers, all := traffic()
	out, sides = play(rand.New(rand.NewSource(1)), l, requests, answers)
	return l, out, sides, all
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func TestDroppedAnswerEndsTheDirection(t *testing.T) {
	l, out, _, all := playRule(t, `{"name": "r", "api": "EndTxn", "direction": "answer",
		"occurrence": 2, "act": "drop"}`)
	if !bytes.Equal(out[1], all[0].answer) {
		t.Fatalf("%x", out[1])
	}
	events, next := l.rules.since(0, 0)
	if next != 1 || events[0].correlation != 2 || events[0].Occurrence != 2 {
		t.Fatalf("%+v", events)
	}
}

func TestDroppedAnswerMayLetLaterOnesThrough(t *testing.T) {
	_, out, _, all := playRule(t, `{"name": "r", "api": "EndTxn", "direction": "answer",
		"occurrence": 2, "act": "drop", "goes_on": true}`)
	if !bytes.Equal(out[1], join(all[0].answer, all[2].answer)) {
		t.Fatalf("%x", out[1])
	}
}

func TestDroppedRequestIsNotAwaited(t *testing.T) {
	l := newLink(t, `{"name": "r", "direction": "request", "act": "drop", "goes_on": true}`)
	requests, _, all := traffic()
	out, sides := play(rand.New(rand.NewSource(1)), l, requests, join(all[1].answer, all[2].answer))
	if !bytes.Equal(out[0], join(all[1].request, all[2].request)) || len(sides[0].conn.pending) > 0 {
		t.Fatalf("%x", out[0])
	}
}

func TestFieldsOfTheRequestSelectTheAnswer(t *testing.T) {
	l, out, _, all := playRule(t, `{"name": "r", "api": "EndTxn", "direction": "answer",
		"request_fields": {"transactional_id": "a"}, "occurrence": 2, "act": "error", "error": 16}`)
	changed := append([]byte(nil), all[2].answer...)
	binary.BigEndian.PutUint16(changed[len(changed)-2:], 16)
	if !bytes.Equal(out[1], join(all[0].answer, all[1].answer, changed)) {
		t.Fatalf("%x", out[1])
	}
	if events, _ := l.rules.since(0, 0); len(events) != 1 {
		t.Fatalf("%+v", events)
	}
}

func TestFieldOfARequestIsRewritten(t *testing.T) {
	_, out, _, all := playRule(t, `{"name": "r", "api": "EndTxn", "direction": "request",
		"fields": {"transactional_id": "b"}, "act": "rewrite", "path": "transactional_id",
		"value": "longer"}`)
	if !bytes.Equal(out[0], join(all[0].request, endTxn(2, "longer").request, all[2].request)) {
		t.Fatalf("%x", out[0])
	}
}

func TestClosingActsEndTheConnection(t *testing.T) {
	expected := map[string]int{"close_before": 0, "close_after": 1, "truncate": 0}
	for act, passed := range expected {
		_, out, sides, all := playRule(t, `{"name": "r", "direction": "request", "act": "`+act+
			`", "bytes": 7, "occurrence": 2}`)
		allowed := all[0].request
		if passed == 1 {
			allowed = join(allowed, all[1].request)
		} else if act == "truncate" {
			allowed = join(allowed, all[1].request[:7])
		}
		queue := sides[0].queue
		if !bytes.Equal(out[0], allowed) || !queue[len(queue)-1].closes {
			t.Fatalf("%s: %x", act, out[0])
		}
	}
}

func TestHeldFrameAndThoseBehindItWait(t *testing.T) {
	l, _, sides, _ := playRule(t, `{"name": "r", "direction": "request", "act": "hold",
		"occurrence": 2}`)
	var held <-chan struct{}
	for _, one := range sides[0].queue {
		if one.until != nil {
			held = one.until
		}
	}
	if held == nil || isClosed(held) {
		t.Fatal("nothing is held")
	}
	if l.rules.remove("r") == nil || !isClosed(held) {
		t.Fatal("not released")
	}
}

func TestProduceRequestsWithoutAnswersAreSkipped(t *testing.T) {
	l := newLink(t)
	random := rand.New(rand.NewSource(1))
	silent, last := newSample(random, produce, 9, 1), endTxn(2, "a")
	_, sides := play(random, l, join(silent.request, last.request), last.answer)
	if len(sides[0].conn.pending) != 0 || l.counts.unread.Load() != 0 {
		t.Fatal("the answer was not found")
	}
}

func TestUnreadableFrameOfARuleClosesTheConnection(t *testing.T) {
	l := newLink(t, `{"name": "r", "api": "EndTxn", "direction": "answer", "act": "error",
		"error": 16}`)
	whole := endTxn(1, "a")
	short := sized(append([]byte(nil), whole.answer[:10]...))
	out, sides := play(rand.New(rand.NewSource(1)), l, whole.request, short)
	events, _ := l.rules.since(0, 0)
	if len(out[1]) > 0 || !sides[1].queue[0].closes || events[0].Act != "unreadable" {
		t.Fatalf("%x %+v", out[1], events)
	}
}

func TestMistakesInRulesAreNamed(t *testing.T) {
	mistakes := map[string]string{
		`{"name": "r", "direction": "answer", "act": "drop", "api": "EndTnx"}`: "EndTxn",
		`{"name": "r", "direction": "up", "act": "drop"}`:                      "request or answer",
		`{"name": "r", "direction": "answer", "act": "lose"}`:                  "one of delay",
		`{"name": "r", "direction": "answer", "act": "drop", "nth": 2}`:        "nth",
		`{"name": "r", "direction": "answer", "act": "hold", "goes_on": true}`: "in the order",
		`{"name": "r", "direction": "both", "act": "drop"}`:                    "belongs to record",
		`{"name": "r", "direction": "answer", "act": "duplicate"}`:             "duplicate acts on requests",
		`{"name": "r", "direction": "request", "act": "drop", "api": "Fetch",
			"fields": {"topics[].nmae": "x"}}`: "topic_id",
		`{"name": "r", "direction": "request", "act": "drop", "api": "Fetch",
			"fields": {"topics.topic": "x"}}`: "topics[]",
	}
	for text, named := range mistakes {
		if _, err := newRule([]byte(text)); err == nil || !strings.Contains(err.Error(), named) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestProbabilityFollowsTheSeed(t *testing.T) {
	text := `{"name": "r", "direction": "request", "act": "drop", "times": 0, "probability": 0.3,
		"seed": 7}`
	var hits [2][]int
	for run := range hits {
		made, err := newRule([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for at := range 1000 {
			if made.isSelected() {
				hits[run] = append(hits[run], at)
			}
		}
	}
	if len(hits[0]) < 200 || len(hits[0]) > 400 || len(hits[0]) != len(hits[1]) {
		t.Fatalf("%d and %d hits", len(hits[0]), len(hits[1]))
	}
}

func TestRecorderShowsRequestsAndAnswersOfAField(t *testing.T) {
	l, out, _, all := playRule(t, `{"name": "r", "direction": "both", "act": "record", "times": 0,
		"api": "EndTxn", "request_fields": {"transactional_id": "a"}}`)
	if !bytes.Equal(out[0], join(all[0].request, all[1].request, all[2].request)) {
		t.Fatalf("%x", out[0])
	}
	events, _ := l.rules.since(0, 0)
	if len(events) != 4 || !strings.Contains(string(events[0].Message), `"transactional_id":"a"`) ||
		events[3].Direction != answer || events[3].Connection == 0 {
		t.Fatalf("%+v", events)
	}
}
