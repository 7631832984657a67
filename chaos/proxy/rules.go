package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Rules: which frames of which links are acted on, and how.

const (
	request = "request"
	answer  = "answer"
	both    = "both"
)

// actionKind is what happens to one frame.
type actionKind int

const (
	pass actionKind = iota
	drop
	closeBefore
	closeAfter
	truncate
	replace
	delay
	hold
	duplicate
	detach
)

type action struct {
	kind  actionKind
	rule  *rule
	bytes []byte // the frame instead, of replace
}

// rule is one rule, as the API reads and shows it.
type rule struct {
	Name string `json:"name"`
	// Links are the names of the proxies, with * as in file names.
	Links     []string `json:"links"`
	API       string   `json:"api"` // name or key, or empty for every API
	Direction string   `json:"direction"`
	// MinVersion and MaxVersion bound the API's version; a MaxVersion of -1 is the newest.
	MinVersion int16  `json:"min_version"`
	MaxVersion int16  `json:"max_version"`
	ClientID   string `json:"client_id"` // with *, empty for every client
	// Fields of the message, and of the request to which it belongs, by path: all must match.
	Fields        map[string]any `json:"fields"`
	RequestFields map[string]any `json:"request_fields"`
	// Occurrence is the first matching frame that is hit, 1 or more, and Times how many are hit
	// from there on; 0 is all.
	Occurrence  int     `json:"occurrence"`
	Times       int     `json:"times"`
	Probability float64 `json:"probability"`
	Seed        int64   `json:"seed"`

	Act     string `json:"act"`
	DelayMs int    `json:"delay_ms"`
	Bytes   int    `json:"bytes"` // of truncate
	Error   int16  `json:"error"`
	Path    string `json:"path"` // of error (empty: every error code) and rewrite
	Value   any    `json:"value"`
	// GoesOn lets later frames of the connection through after a drop, and past a held request,
	// which is then sent on a connection of its own.
	GoesOn bool `json:"goes_on"`

	Seen int `json:"seen"` // matching frames so far
	Hits int `json:"hits"`

	apiKey   int16
	random   *rand.Rand
	released chan struct{}
	isDone   bool
	sending  sync.WaitGroup // requests on connections of their own
}

var acts = []string{
	"delay", "hold", "drop", "close_before", "close_after", "duplicate", "error", "rewrite",
	"truncate", "record",
}

// newRule reads a rule. Every mistake is named with what there is instead.
func newRule(data []byte) (*rule, error) {
	made := &rule{MaxVersion: -1, Occurrence: 1, Times: 1, Probability: 1, apiKey: -1}
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(made); err != nil {
		return nil, fmt.Errorf("not a rule: %w", err)
	}
	made.Seen, made.Hits = 0, 0
	made.released = make(chan struct{})
	made.random = rand.New(rand.NewSource(made.Seed))
	return made, made.check()
}

func (r *rule) check() error {
	switch {
	case r.Name == "":
		return fmt.Errorf("a rule needs a name")
	case r.Direction != request && r.Direction != answer && r.Direction != both:
		return fmt.Errorf("direction %q: request or answer, or both of record", r.Direction)
	case r.Direction == both && (r.Act != "record" || len(r.Fields) > 0):
		return fmt.Errorf("direction both belongs to record, with request_fields")
	case !slices.Contains(acts, r.Act):
		return fmt.Errorf("act %q: one of %s", r.Act, strings.Join(acts, ", "))
	case r.Occurrence < 1 || r.Times < 0:
		return fmt.Errorf("occurrence is 1 or more, times 0 or more")
	case r.Probability <= 0 || r.Probability > 1:
		return fmt.Errorf("probability %v: above 0, at most 1", r.Probability)
	case r.Direction == request && len(r.RequestFields) > 0:
		return fmt.Errorf("request_fields belong to rules for answers; use fields")
	case r.Act == "duplicate" && r.Direction == answer:
		return fmt.Errorf("an answer cannot be sent twice: duplicate acts on requests")
	case r.Act == "error" && r.Direction == request:
		return fmt.Errorf("a request has no error code: error acts on answers")
	case r.Act == "hold" && r.Direction == answer && r.GoesOn:
		return fmt.Errorf("answers come in the order of their requests: none can pass a held one")
	case r.Act == "delay" && r.DelayMs <= 0:
		return fmt.Errorf("delay needs delay_ms above 0")
	case r.Act == "rewrite" && r.Path == "":
		return fmt.Errorf("rewrite needs the path of a field")
	}
	if r.API != "" {
		key, err := apiKey(r.API)
		if err != nil {
			return err
		}
		r.apiKey = key
	}
	return r.checkPaths()
}

// checkPaths refuses paths that the message has at no version.
func (r *rule) checkPaths() error {
	needsMessage := len(r.Fields) > 0 || len(r.RequestFields) > 0 || r.Path != ""
	if !needsMessage {
		return nil
	}
	if r.apiKey < 0 {
		return fmt.Errorf("a path needs an api")
	}
	for field := range r.Fields {
		if err := checkPath(r.apiKey, r.Direction == request, field); err != nil {
			return err
		}
	}
	for field := range r.RequestFields {
		if err := checkPath(r.apiKey, true, field); err != nil {
			return err
		}
	}
	if r.Path != "" {
		return checkPath(r.apiKey, r.Direction == request, r.Path)
	}
	return nil
}

// maxRecordedBytes bounds the frames that are kept whole to show them.
const maxRecordedBytes = 4 << 20

// needsBody says whether the rule reads or changes the whole frame.
func (r *rule) needsBody(isRequest bool, head header) bool {
	switch {
	case len(r.Fields) > 0 || (isRequest && len(r.RequestFields) > 0):
		return true
	case r.Act == "record":
		return head.size <= maxRecordedBytes
	}
	return slices.Contains([]string{"duplicate", "error", "rewrite"}, r.Act) || r.isDetached()
}

// isDetached says whether held requests leave the order of their connection.
func (r *rule) isDetached() bool { return r.Act == "hold" && r.GoesOn }

func (r *rule) concerns(l *link, head header) bool {
	if r.isDone || (r.apiKey >= 0 && r.apiKey != head.apiKey) || head.version < r.MinVersion ||
		(r.MaxVersion >= 0 && head.version > r.MaxVersion) {
		return false
	}
	if r.ClientID != "" && !matches(r.ClientID, head.clientID) {
		return false
	}
	return len(r.Links) == 0 ||
		slices.ContainsFunc(r.Links, func(pattern string) bool { return matches(pattern, l.name) })
}

func matches(pattern, name string) bool {
	matched, err := path.Match(pattern, name)
	return err == nil && matched
}

// isSelected counts a matching frame and says whether it is hit.
func (r *rule) isSelected() bool {
	r.Seen++
	if r.Seen < r.Occurrence || (r.Times > 0 && r.Hits >= r.Times) {
		return false
	}
	if r.Probability < 1 && r.random.Float64() >= r.Probability {
		return false
	}
	r.Hits++
	return true
}

func needBody(rules []*rule, isRequest bool, head header) bool {
	return slices.ContainsFunc(rules, func(one *rule) bool { return one.needsBody(isRequest, head) })
}

// ruleTable holds the rules of a server, in the order of their arrival, and their hits.
type ruleTable struct {
	mutex      sync.Mutex
	rules      []*rule
	isEmpty    atomic.Bool
	events     []event
	eventBytes int           // of their messages
	first      int           // number of the first event that is kept
	changed    chan struct{} // closed at the next event
}

// maxEvents and maxEventBytes bound the events that are kept for readers.
const (
	maxEvents     = 100_000
	maxEventBytes = 32 << 20
)

func newRuleTable() *ruleTable {
	made := &ruleTable{changed: make(chan struct{})}
	made.isEmpty.Store(true)
	return made
}

func (t *ruleTable) add(made *rule) error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.find(made.Name) != nil {
		return fmt.Errorf("the rule %q is there already", made.Name)
	}
	t.rules = append(t.rules, made)
	t.isEmpty.Store(false)
	return nil
}

func (t *ruleTable) find(name string) *rule {
	for _, one := range t.rules {
		if one.Name == name {
			return one
		}
	}
	return nil
}

// release lets held frames go on. The rule holds no more, and keeps its counts.
func (t *ruleTable) release(name string) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	found := t.find(name)
	if found != nil && !found.isDone {
		found.isDone = true
		close(found.released)
	}
	return found != nil
}

// remove releases a rule and forgets it. What it held for connections of their own is sent then:
// remove waits for the answers, at most `sendPatience`. The result is nil where there is no such rule.
func (t *ruleTable) remove(name string) *rule {
	if !t.release(name) {
		return nil
	}
	t.mutex.Lock()
	removed := t.find(name)
	t.rules = slices.DeleteFunc(t.rules, func(one *rule) bool { return one == removed })
	t.isEmpty.Store(len(t.rules) == 0)
	t.mutex.Unlock()
	if removed != nil {
		removed.awaitSending()
	}
	return removed
}

const sendPatience = 1500 * time.Millisecond

func (r *rule) awaitSending() {
	sent := make(chan struct{})
	go func() {
		r.sending.Wait()
		close(sent)
	}()
	select {
	case <-sent:
	case <-time.After(sendPatience):
	}
}

// list is the rules as JSON, with their counts.
func (t *ruleTable) list() json.RawMessage {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if len(t.rules) == 0 {
		return json.RawMessage("[]")
	}
	listed, _ := json.Marshal(t.rules)
	return listed
}

// candidates are the rules that concern a frame by what its header says.
func (t *ruleTable) candidates(l *link, direction string, head header) []*rule {
	if t.isEmpty.Load() {
		return nil
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	var found []*rule
	for _, one := range t.rules {
		if (one.Direction == direction || one.Direction == both) && one.concerns(l, head) {
			found = append(found, one)
		}
	}
	return found
}

// readRequests says whether a rule for the answer reads the request.
func (t *ruleTable) readRequests(l *link, head header) bool {
	for _, one := range t.candidates(l, answer, head) {
		if len(one.RequestFields) > 0 {
			return true
		}
	}
	return false
}

// decide counts the frame for every rule that it matches and acts by the first that it hits.
func (t *ruleTable) decide(l *link, direction string, f *frame, whole *message) action {
	chosen := action{}
	for _, one := range f.candidates {
		isMatch, err := one.matchesFields(f, whole)
		if err != nil {
			return t.refuse(l, direction, f, one, err)
		}
		t.mutex.Lock()
		isHit := isMatch && !one.isDone && one.isSelected()
		number := one.Seen
		t.mutex.Unlock()
		if !isHit || (chosen.rule != nil && one.Act != "record") {
			continue
		}
		made, err := one.action(whole)
		if err != nil {
			return t.refuse(l, direction, f, one, err)
		}
		hit := event{
			Rule: one.Name, Link: l.name, Direction: direction, header: f.header, Act: one.Act,
			Occurrence: number, Connection: f.connection, AnsweredIn: f.answeredIn,
		}
		if one.Act == "record" {
			hit.Message = whole.describe()
		} else {
			chosen = made
		}
		t.report(hit)
	}
	return chosen
}

// refuse closes the connection: a frame that a rule needs and that cannot be read never passes.
func (t *ruleTable) refuse(l *link, direction string, f *frame, by *rule, err error) action {
	t.report(event{
		Rule: by.Name, Link: l.name, Direction: direction, header: f.header, Act: "unreadable",
		Detail: err.Error(),
	})
	return action{kind: closeBefore, rule: by}
}

func (r *rule) matchesFields(f *frame, whole *message) (bool, error) {
	if len(r.RequestFields) > 0 {
		asked := whole
		if !whole.isRequest {
			asked = newMessage(true, &frame{header: f.request.header}, f.request.body)
		}
		isMatch, err := asked.matches(r.RequestFields)
		if !isMatch || err != nil {
			return false, err
		}
	}
	if len(r.Fields) == 0 {
		return true, nil
	}
	return whole.matches(r.Fields)
}

func (r *rule) action(whole *message) (action, error) {
	kinds := map[string]actionKind{
		"drop": drop, "close_before": closeBefore, "close_after": closeAfter, "truncate": truncate,
		"delay": delay, "hold": hold, "duplicate": duplicate,
	}
	made := action{kind: kinds[r.Act], rule: r}
	var err error
	switch r.Act {
	case "hold":
		if r.GoesOn {
			made.kind = detach
		}
	case "error":
		made.kind = replace
		made.bytes, err = whole.withError(r.Path, r.Error)
	case "rewrite":
		made.kind = replace
		made.bytes, err = whole.withField(r.Path, r.Value)
	}
	return made, err
}

func apiKey(name string) (int16, error) {
	if key, err := strconv.ParseInt(name, 10, 16); err == nil && key >= 0 && key <= maxAPIKey {
		return int16(key), nil
	}
	names := make([]string, 0, maxAPIKey)
	for key := int16(0); key <= maxAPIKey; key++ {
		known := kmsg.NameForKey(key)
		if known == "Unknown" {
			continue
		}
		if strings.EqualFold(known, name) {
			return key, nil
		}
		names = append(names, known)
	}
	return -1, fmt.Errorf("api %q: one of %s", name, strings.Join(names, ", "))
}
