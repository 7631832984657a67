package main

import (
	"encoding/json"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"golang.org/x/sys/unix"
)

// event is one hit of a rule: the proof that a fault acted.
type event struct {
	Rule      string
	Link      string
	Direction string
	header
	Act        string
	Occurrence int
	Detail     string
	Message    json.RawMessage
	AtNs       int64
	Connection int64         // number of the connection
	AnsweredIn time.Duration // of an answer: since its request
}

// MarshalJSON flattens the header. `at_ns` is CLOCK_MONOTONIC of the proxy's host.
func (e event) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		AtNs        int64           `json:"at_ns"`
		Rule        string          `json:"rule"`
		Link        string          `json:"link"`
		Direction   string          `json:"direction"`
		API         string          `json:"api"`
		Key         int16           `json:"api_key"`
		Version     int16           `json:"version"`
		Correlation int32           `json:"correlation_id"`
		ClientID    string          `json:"client_id"`
		Bytes       int             `json:"bytes"`
		Act         string          `json:"act"`
		Occurrence  int             `json:"occurrence"`
		Detail      string          `json:"detail,omitempty"`
		Message     json.RawMessage `json:"message,omitempty"`
		Connection  int64           `json:"connection"`
		AnsweredIn  int64           `json:"answered_in_ns,omitempty"`
	}{
		e.AtNs, e.Rule, e.Link, e.Direction, kmsg.NameForKey(e.apiKey), e.apiKey, e.version, e.correlation,
		e.clientID, sizeBytes + e.size, e.Act, e.Occurrence, e.Detail, e.Message,
		e.Connection, int64(e.AnsweredIn),
	})
}

func monotonicNs() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0
	}
	return now.Nano()
}

// report keeps an event for readers.
func (t *ruleTable) report(one event) {
	one.AtNs = monotonicNs()
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.events = append(t.events, one)
	t.eventBytes += len(one.Message)
	if len(t.events) > maxEvents || t.eventBytes > maxEventBytes {
		t.forgetOldest(len(t.events) / 4)
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *ruleTable) forgetOldest(count int) {
	for _, one := range t.events[:count] {
		t.eventBytes -= len(one.Message)
	}
	t.events = append([]event(nil), t.events[count:]...)
	t.first += count
}

// since returns the events from number `from` on, and the number of the next one. It waits for the
// first of them, at most `patience`.
func (t *ruleTable) since(from int, patience time.Duration) ([]event, int) {
	deadline := time.After(patience)
	for {
		t.mutex.Lock()
		next, changed := t.first+len(t.events), t.changed
		if next > from {
			events := append([]event(nil), t.events[max(0, from-t.first):]...)
			t.mutex.Unlock()
			return events, next
		}
		t.mutex.Unlock()
		select {
		case <-changed:
		case <-deadline:
			return nil, next
		}
	}
}
