package main

import (
	"time"

	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// The two toxics of a link that reads frames. They never block without listening for Toxiproxy's
// interrupt, and keep what is still to be written in the state of their stub, so that other toxics
// may come and go behind them.

// frameToxic carries the name of its link, as an attribute.
type frameToxic struct {
	Link string `json:"link"`
}

type requestToxic struct{ frameToxic }
type answerToxic struct{ frameToxic }

const (
	requestToxicType = "kafka_requests"
	answerToxicType  = "kafka_answers"
)

func init() {
	toxics.Register(requestToxicType, new(requestToxic))
	toxics.Register(answerToxicType, new(answerToxic))
}

func (t *requestToxic) NewState() interface{} { return links.get(t.Link).newSide(true) }
func (t *answerToxic) NewState() interface{}  { return links.get(t.Link).newSide(false) }

func (t *frameToxic) Pipe(stub *toxics.ToxicStub) { pipe(stub, stub.State.(*side)) }

// maxQueuedBytes bounds what a connection reads ahead while a rule holds or delays it.
const maxQueuedBytes = 4 << 20

// pipe moves chunks through a side until the toxic is interrupted or the connection ends.
func pipe(stub *toxics.ToxicStub, s *side) {
	for {
		var output chan<- *stream.StreamChunk
		var chunk *stream.StreamChunk
		var due <-chan time.Time
		var released <-chan struct{}
		if len(s.queue) > 0 {
			head := s.queue[0]
			wait := time.Until(head.due)
			switch {
			case head.until != nil && !isClosed(head.until):
				released = head.until
			case wait > 0:
				timer := time.NewTimer(wait)
				defer timer.Stop()
				due = timer.C
			case head.closes:
				end(stub)
				return
			case len(head.data) == 0:
				s.pop()
				continue
			default:
				output, chunk = stub.Output, &stream.StreamChunk{Data: head.data, Timestamp: head.at}
			}
		} else if s.hasEnded {
			stub.Close()
			return
		}
		var input <-chan *stream.StreamChunk
		if !s.hasEnded && s.queuedBytes < maxQueuedBytes {
			input = stub.Input
		}
		select {
		case <-stub.Interrupt:
			return
		case output <- chunk:
			s.pop()
		case <-due:
		case <-released:
		case arrived := <-input:
			if arrived == nil {
				s.splitter.flush(s)
				s.hasEnded = true
			} else {
				s.at = arrived.Timestamp
				s.splitter.feed(arrived.Data, s)
				s.join()
			}
		}
	}
}

// end closes the connection. What still arrives is read and forgotten, so that its reader ends.
func end(stub *toxics.ToxicStub) {
	stub.Close()
	input := stub.Input
	go func() {
		for range input {
		}
	}()
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}
