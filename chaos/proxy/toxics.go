package main

import (
	"fmt"
	"reflect"
	"time"
	"unsafe"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// The two toxics of a link that reads frames. They never block without listening for Toxiproxy's
// interrupt, and keep what is still to be written in the state of their stub, so that other toxics
// may come and go behind them.
//
// Toxiproxy begins each chain of toxics with a hidden one that does nothing. The toxics that read
// frames stand in its place: so they are there from the first byte, no request to Toxiproxy's API
// removes them, and a chunk passes as many goroutines as in a plain Toxiproxy.

// frameToxic reads the frames of one direction of a link.
type frameToxic struct {
	link      *link
	isRequest bool
}

func (t *frameToxic) NewState() interface{}       { return t.link.newSide(t.isRequest) }
func (t *frameToxic) Pipe(stub *toxics.ToxicStub) { pipe(stub, stub.State.(*side)) }

// readFrames replaces the hidden toxics of a proxy. The field that holds them is not exported.
func readFrames(proxy *toxiproxy.Proxy, of *link) error {
	var chain [][]*toxics.ToxicWrapper
	field := reflect.ValueOf(proxy.Toxics).Elem().FieldByName("chain")
	if !field.IsValid() || field.Type() != reflect.TypeOf(chain) || field.Len() != int(stream.NumDirections) {
		return fmt.Errorf("this is not Toxiproxy 2.12: its toxics are kept in another form")
	}
	chain = *(*[][]*toxics.ToxicWrapper)(unsafe.Pointer(field.UnsafeAddr()))
	for _, direction := range []stream.Direction{stream.Upstream, stream.Downstream} {
		chain[direction][0] = &toxics.ToxicWrapper{
			Toxic:     &frameToxic{link: of, isRequest: direction == stream.Upstream},
			Type:      "noop",
			Direction: direction,
			Toxicity:  1,
		}
	}
	return nil
}

// maxQueuedBytes bounds what a connection reads ahead while a rule holds or delays it.
const maxQueuedBytes = 4 << 20

// pipe moves chunks through a side until the toxic is interrupted or the connection ends. What may
// be written at once is written before anything more is read.
func pipe(stub *toxics.ToxicStub, s *side) {
	for {
		switch {
		case s.isEmpty() && s.hasEnded:
			stub.Close()
			return
		case s.isEmpty():
			select {
			case <-stub.Interrupt:
				return
			case arrived := <-stub.Input:
				s.read(arrived)
			}
		case isPlain(s.queue[0]):
			select {
			case <-stub.Interrupt:
				return
			case stub.Output <- s.chunk():
				s.pop()
			}
		case s.queue[0].closes:
			end(stub)
			return
		case !wait(stub, s):
			return
		}
	}
}

// wait awaits the moment at which the first piece may be written, and reads on meanwhile. The
// result is false when the toxic was interrupted.
func wait(stub *toxics.ToxicStub, s *side) bool {
	head := &s.queue[0]
	var due <-chan time.Time
	if head.until == nil {
		timer := time.NewTimer(time.Until(head.due))
		defer timer.Stop()
		due = timer.C
	}
	var input <-chan *stream.StreamChunk
	if !s.hasEnded && s.queuedBytes < maxQueuedBytes {
		input = stub.Input
	}
	select {
	case <-stub.Interrupt:
		return false
	case <-due:
		head.due = time.Time{}
	case <-head.until:
		head.until = nil
	case arrived := <-input:
		s.read(arrived)
	}
	return true
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
