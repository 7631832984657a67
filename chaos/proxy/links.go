package main

import (
	"sync"
	"sync/atomic"
	"time"
)

// Links and their connections.
//
// A toxic sees one direction of a connection and not which. Toxiproxy creates the state of both
// directions of a connection one after the other (Proxy.server), and the toxics are there before
// the first connection, so the two states of a connection follow each other.

var connections atomic.Int64 // numbers the connections of this server

// link is a proxy whose frames are read.
type link struct {
	name     string
	upstream string
	rules    *ruleTable
	counts   counts

	mutex sync.Mutex
	begun *connection // has one direction so far
}

// newSide returns the state of one direction of a connection.
func (l *link) newSide(isRequest bool) *side {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if isRequest {
		l.begun = &connection{link: l, number: connections.Add(1)}
		return newSide(l.begun, true)
	}
	conn := l.begun
	l.begun = nil
	if conn == nil { // never happens as long as both toxics are permanent
		conn = &connection{link: l, number: connections.Add(1)}
	}
	return newSide(conn, false)
}

// counts are the frames that passed a link, by API.
type counts struct {
	requests, answers [maxAPIKey + 1]atomic.Uint64
	unread            atomic.Uint64 // connections whose content is not Kafka
}

// sent is a request whose answer is still to come.
type sent struct {
	header
	body      []byte // where a rule for its answer reads the request
	duplicate []byte // to send again once it is answered
	rule      *rule  // of the duplicate
	at        time.Time
}

// maxPending bounds the requests that a connection remembers: those with acks=0 have no answer.
const maxPending = 100_000

// connection is what both directions share.
type connection struct {
	link   *link
	number int64

	mutex    sync.Mutex
	pending  []sent
	mayBeRaw bool // SaslHandshake 0 was sent: frames without a header may follow
	isUnread bool
}

func (c *connection) expectAnswer(request sent) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.pending) == maxPending {
		c.pending = c.pending[1:]
	}
	c.pending = append(c.pending, request)
	if request.apiKey == saslHandshake && request.version == 0 && !request.isRaw {
		c.mayBeRaw = true
	}
}

// answered returns the request with this correlation id. Produce requests before it have acks=0.
func (c *connection) answered(correlation int32) (sent, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for at, request := range c.pending {
		if request.correlation == correlation && !request.isRaw {
			c.pending = c.pending[at+1:]
			return request, true
		}
		if request.apiKey != produce {
			break
		}
	}
	return sent{}, false
}

func (c *connection) awaitsRaw() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return len(c.pending) > 0 && c.pending[0].isRaw
}

func (c *connection) takeRaw() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.pending = c.pending[1:]
}

func (c *connection) mayHaveRaw() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.mayBeRaw
}

// countUnread counts a connection once.
func (c *connection) countUnread() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.isUnread {
		c.isUnread = true
		c.link.counts.unread.Add(1)
	}
}

const (
	produce       = 0
	saslHandshake = 17
	apiVersions   = 18
)

// registry holds all links of the server by name.
type registry struct {
	mutex sync.RWMutex
	links map[string]*link
	rules *ruleTable
}

func newRegistry() *registry {
	return &registry{links: map[string]*link{}, rules: newRuleTable()}
}

// forget removes the link of a proxy that reads no frames any more.
func (r *registry) forget(name string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.links, name)
}

// declare creates the link of a proxy, or returns it with its new upstream address.
func (r *registry) declare(name, upstream string) *link {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	declared := &link{name: name, upstream: upstream, rules: r.rules}
	r.links[name] = declared
	return declared
}

func (r *registry) all() map[string]*link {
	r.mutex.RLock()
	defer r.mutex.RUnlock()
	copied := make(map[string]*link, len(r.links))
	for name, one := range r.links {
		copied[name] = one
	}
	return copied
}
