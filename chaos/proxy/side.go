package main

import (
	"fmt"
	"net"
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
)

// side is one direction of a connection: its frames, what rules do to them, and what is to be
// written.
type side struct {
	conn        *connection
	isRequest   bool
	splitter    splitter
	at          time.Time // when the current chunk arrived
	arrived     *stream.StreamChunk
	queue       []outgoing
	buffer      []outgoing // reused for an empty queue
	queuedBytes int
	hasEnded    bool // nothing more arrives
	isSilent    bool // a dropped frame ended this direction: nothing more gets through
	frame       frame
}

// outgoing is a chunk to be written, not before `due`, and not while `until` is open.
type outgoing struct {
	data   []byte
	at     time.Time
	due    time.Time
	until  <-chan struct{}
	closes bool
}

// frame is the frame that is passing.
type frame struct {
	header
	request    sent // of an answer
	candidates []*rule
	collected  []byte
	collects   bool // its bytes wait for a decision about the whole frame
	act        action
	passed     int
	connection int64
	answeredIn time.Duration
}

func newSide(conn *connection, isRequest bool) *side {
	s := &side{conn: conn, isRequest: isRequest}
	if isRequest {
		s.splitter.parse = parseRequest(conn.mayHaveRaw)
	} else {
		s.splitter.parse = parseAnswer(conn.awaitsRaw)
	}
	return s
}

func (s *side) direction() string {
	if s.isRequest {
		return request
	}
	return answer
}

func (s *side) begin(head header) {
	s.frame = frame{header: head, connection: s.conn.number}
	if s.isRequest {
		s.beginRequest()
	} else {
		s.beginAnswer()
	}
}

func (s *side) beginRequest() {
	f := &s.frame
	if f.isRaw {
		s.conn.expectAnswer(sent{header: f.header})
		return
	}
	s.conn.link.counts.requests[f.apiKey].Add(1)
	f.candidates = s.conn.link.rules.candidates(s.conn.link, request, f.header)
	f.collects = needBody(f.candidates, true, f.header) || s.conn.link.rules.readRequests(s.conn.link, f.header)
	if !f.collects {
		s.decide(nil)
	}
}

func (s *side) beginAnswer() {
	f := &s.frame
	if f.isRaw {
		s.conn.takeRaw()
		return
	}
	sent, isKnown := s.conn.answered(f.correlation)
	if !isKnown {
		s.conn.countUnread()
		s.splitter.isBlind, s.splitter.remaining = true, 0
		return
	}
	f.request = sent
	f.answeredIn = s.at.Sub(sent.at)
	f.apiKey, f.version, f.clientID = sent.apiKey, sent.version, sent.clientID
	s.conn.link.counts.answers[f.apiKey].Add(1)
	if sent.duplicate != nil {
		sent.rule.sending.Add(1)
		go sendAgain(s.conn.link, sent)
	}
	f.candidates = s.conn.link.rules.candidates(s.conn.link, answer, f.header)
	f.collects = needBody(f.candidates, false, f.header)
	if !f.collects {
		s.decide(nil)
	}
}

func (s *side) piece(data []byte, last bool) {
	f := &s.frame
	if f.collects {
		f.collected = append(f.collected, data...)
		if !last {
			return
		}
		f.collects = false
		s.decide(f.collected)
		data = f.collected
	}
	s.apply(data, last)
}

func (s *side) unread(data []byte) {
	s.conn.countUnread()
	if !s.isSilent {
		s.enqueue(outgoing{data: data})
	}
}

// decide chooses the act for the frame. `whole` is the frame's bytes if a rule needs them.
func (s *side) decide(whole []byte) {
	f := &s.frame
	if !s.isSilent && len(f.candidates) > 0 {
		message := newMessage(s.isRequest, f, whole)
		f.act = s.conn.link.rules.decide(s.conn.link, s.direction(), f, message)
	}
	if !s.isRequest || s.isSilent || f.act.kind == drop {
		return
	}
	expected := sent{header: f.header, body: append([]byte(nil), whole...), at: s.at}
	if f.act.kind == detach {
		sendReleased(s.conn.link, expected, f.act.rule)
		return
	}
	if f.act.kind == duplicate {
		expected.duplicate, expected.rule = expected.body, f.act.rule
	}
	s.conn.expectAnswer(expected)
}

// apply writes a piece of the frame as its act demands.
func (s *side) apply(data []byte, last bool) {
	f := &s.frame
	isFirst := f.passed == 0
	f.passed += len(data)
	if s.isSilent {
		return
	}
	switch f.act.kind {
	case drop:
		s.isSilent = last && !f.act.rule.GoesOn
	case detach:
	case closeBefore:
		if isFirst {
			s.enqueue(outgoing{closes: true})
		}
		s.isSilent = last
	case closeAfter:
		s.enqueue(outgoing{data: data})
		if last {
			s.enqueue(outgoing{closes: true})
			s.isSilent = true
		}
	case truncate:
		allowed := max(0, f.act.rule.Bytes-(f.passed-len(data)))
		s.enqueue(outgoing{data: data[:min(allowed, len(data))]})
		if last {
			s.enqueue(outgoing{closes: true})
			s.isSilent = true
		}
	case replace:
		s.enqueue(outgoing{data: f.act.bytes})
	case delay:
		var due time.Time
		if isFirst {
			due = time.Now().Add(time.Duration(f.act.rule.DelayMs) * time.Millisecond)
		}
		s.enqueue(outgoing{data: data, due: due})
	case hold:
		var until <-chan struct{}
		if isFirst {
			until = f.act.rule.released
		}
		s.enqueue(outgoing{data: data, until: until})
	default:
		s.enqueue(outgoing{data: data})
	}
}

// read splits a chunk, or notes the end of the stream (nil).
func (s *side) read(arrived *stream.StreamChunk) {
	if arrived == nil {
		s.splitter.flush(s)
		s.hasEnded = true
		return
	}
	s.arrived, s.at = arrived, arrived.Timestamp
	s.splitter.feed(arrived.Data, s)
}

// enqueue adds a piece. Neighbouring pieces of one chunk become one: they lie beside each other in
// memory.
func (s *side) enqueue(one outgoing) {
	if len(one.data) == 0 && !one.closes {
		return
	}
	one.at = s.at
	s.queuedBytes += len(one.data)
	if count := len(s.queue); count > 0 && isPlain(one) && isPlain(s.queue[count-1]) &&
		areNeighbours(s.queue[count-1].data, one.data) {
		before := s.queue[count-1].data
		s.queue[count-1].data = before[: len(before)+len(one.data) : cap(before)]
		return
	}
	s.queue = append(s.queue, one)
}

func (s *side) isEmpty() bool { return len(s.queue) == 0 }

// chunk is the first piece: the chunk that arrived, where it passes as it is.
func (s *side) chunk() *stream.StreamChunk {
	head := &s.queue[0]
	if s.arrived != nil && len(s.arrived.Data) == len(head.data) && &s.arrived.Data[0] == &head.data[0] {
		return s.arrived
	}
	return &stream.StreamChunk{Data: head.data, Timestamp: head.at}
}

func (s *side) pop() {
	s.queuedBytes -= len(s.queue[0].data)
	s.queue[0] = outgoing{}
	if len(s.queue) > 1 {
		s.queue = s.queue[1:]
		return
	}
	if cap(s.buffer) == 0 {
		s.buffer = make([]outgoing, 0, 8)
	}
	s.queue, s.arrived = s.buffer[:0], nil
}

func isPlain(one outgoing) bool { return one.due.IsZero() && one.until == nil && !one.closes }

func areNeighbours(left, right []byte) bool {
	if len(left) == 0 || len(right) == 0 || cap(left) < len(left)+len(right) {
		return false
	}
	return &left[:len(left)+1][len(left)] == &right[0]
}

const answerDeadline = 30 * time.Second

// sendAgain sends a request once more, on a connection of its own, and forgets its answer.
func sendAgain(l *link, again sent) {
	defer again.rule.sending.Done()
	result := "answered"
	if err := exchange(l.upstream, again.duplicate); err != nil {
		result = err.Error()
	}
	l.rules.report(event{
		Rule: again.rule.Name, Link: l.name, Direction: request, header: again.header,
		Act: again.rule.Act + " " + result,
	})
}

// sendReleased sends a held request on a connection of its own once its rule is released.
func sendReleased(l *link, held sent, by *rule) {
	held.duplicate, held.rule = held.body, by
	by.sending.Add(1)
	go func() {
		<-by.released
		sendAgain(l, held)
	}()
}

func exchange(address string, frame []byte) error {
	conn, err := net.DialTimeout("tcp", address, 3*time.Second)
	if err != nil {
		return fmt.Errorf("not sent: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(answerDeadline)); err != nil {
		return err
	}
	if _, err := conn.Write(frame); err != nil {
		return fmt.Errorf("not sent: %w", err)
	}
	var size [sizeBytes]byte
	if _, err := conn.Read(size[:]); err != nil {
		return fmt.Errorf("sent and not answered: %w", err)
	}
	return nil
}
