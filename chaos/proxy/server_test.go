package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// newServer is a server of this process without an HTTP API.
func newServer() *api {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	return &api{server: server, registry: newRegistry()}
}

// startProxy starts a proxy to an upstream, and returns its address.
func startProxy(t testing.TB, a *api, upstream string, kafka bool) string {
	t.Helper()
	proxy, err := a.newProxy(proxySpec{Name: "client-b1", Listen: "127.0.0.1:0", Upstream: upstream, Kafka: kafka})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.server.Collection.Add(proxy, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Stop)
	return proxy.Listen
}

// startBroker listens and answers each request by its correlation id alone.
func startBroker(t testing.TB, received *atomic.Int64) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go answerAll(conn, received)
		}
	}()
	return listener.Addr().String()
}

func answerAll(conn net.Conn, received *atomic.Int64) {
	defer conn.Close()
	head, rest := make([]byte, 12), make([]byte, 1<<20)
	for {
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		left := int(binary.BigEndian.Uint32(head)) - 8
		for left > 0 {
			count, err := conn.Read(rest[:min(left, len(rest))])
			if err != nil {
				return
			}
			left -= count
		}
		received.Add(1)
		if _, err := conn.Write(append([]byte{0, 0, 0, 4}, head[8:12]...)); err != nil {
			return
		}
	}
}

// bigRequest is a Produce request whose body is zeros: it is never decoded.
func bigRequest(correlation int32, size int) []byte {
	frame := make([]byte, size)
	binary.BigEndian.PutUint32(frame, uint32(size-sizeBytes))
	binary.BigEndian.PutUint16(frame[6:], 9)
	binary.BigEndian.PutUint32(frame[8:], uint32(correlation))
	return frame
}

func TestFrameOf100MBStreamsThroughWithoutBeingKept(t *testing.T) {
	a := newServer()
	other, err := newRule([]byte(`{"name": "other", "direction": "request", "act": "drop", "api": "EndTxn",
		"fields": {"transactional_id": "x"}}`))
	if err != nil {
		t.Fatal(err)
	}
	recorder, err := newRule([]byte(`{"name": "r", "direction": "both", "act": "record", "times": 0}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []*rule{other, recorder} {
		if err := a.registry.rules.add(one); err != nil {
			t.Fatal(err)
		}
	}
	var received atomic.Int64
	address := startProxy(t, a, startBroker(t, &received), true)
	part := bigRequest(7, 1<<20)
	binary.BigEndian.PutUint32(part, 100<<20-sizeBytes)
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	most := watchHeap(func() {
		for at := range 100 {
			if _, err := conn.Write(part); err != nil {
				t.Error(err)
			}
			if at == 0 {
				clear(part)
			}
		}
		answer := make([]byte, 8)
		if _, err := io.ReadFull(conn, answer); err != nil || answer[7] != 7 {
			t.Errorf("%x %v", answer, err)
		}
	})
	if grown := int64(most) - int64(before.HeapAlloc); grown > 24<<20 {
		t.Fatalf("the heap grew by %d MB", grown>>20)
	}
	events, _ := a.registry.rules.since(0, 0)
	if len(events) != 2 || !strings.Contains(string(events[0].Message), "too long") {
		t.Fatalf("%d events", len(events))
	}
}

// watchHeap returns the largest heap while `act` runs.
func watchHeap(act func()) uint64 {
	done, most := make(chan struct{}), make(chan uint64)
	go func() {
		var largest uint64
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			largest = max(largest, now.HeapAlloc)
			select {
			case <-done:
				most <- largest
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	act()
	close(done)
	return <-most
}

func TestToxicsOfToxiproxyComeAndGoBehindTheFrames(t *testing.T) {
	a := newServer()
	var received atomic.Int64
	address := startProxy(t, a, startBroker(t, &received), true)
	proxy, err := a.server.Collection.Get("client-b1")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for at := range int32(4) {
		if at%2 == 1 {
			toxic := `{"name": "slow", "type": "latency", "stream": "upstream", "attributes": {"latency": 20}}`
			if _, err := proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
				t.Fatal(err)
			}
		} else {
			proxy.Toxics.ResetToxics(t.Context())
		}
		if _, err := conn.Write(bigRequest(at, 1000)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
	}
	counts := &a.registry.all()["client-b1"].counts
	if counts.requests[0].Load() != 4 || counts.answers[0].Load() != 4 || counts.unread.Load() != 0 {
		t.Fatalf("%d requests, %d answers", counts.requests[0].Load(), counts.answers[0].Load())
	}
}

func TestFieldsFileIsUpToDate(t *testing.T) {
	written, err := os.ReadFile("fields.json")
	if err != nil || string(written) != catalogue() {
		t.Fatal("write it anew: go run . -fields > fields.json", err)
	}
}

func TestHeldRequestArrivesAfterLaterOnes(t *testing.T) {
	var received atomic.Int64
	l := newLink(t, `{"name": "r", "direction": "request", "act": "hold", "goes_on": true, "occurrence": 2}`)
	l.upstream = startBroker(t, &received)
	requests, _, all := traffic()
	out, sides := play(rand.New(rand.NewSource(1)), l, requests, join(all[0].answer, all[2].answer))
	if !bytes.Equal(out[0], join(all[0].request, all[2].request)) || len(sides[0].conn.pending) > 0 {
		t.Fatalf("%x", out[0])
	}
	if received.Load() != 0 {
		t.Fatal("it was not held")
	}
	l.rules.remove("r")
	events, _ := l.rules.since(0, 0)
	if received.Load() != 1 || len(events) != 2 || events[1].Act != "hold answered" {
		t.Fatalf("%d received, %+v", received.Load(), events)
	}
}

// BenchmarkLink compares the processor time of links: `go test -bench Link -benchtime 3s`.
func BenchmarkLink(b *testing.B) {
	for _, size := range []int{300, 17_000, 200_000} {
		for name, kafka := range map[string]bool{"plain": false, "kafka": true} {
			b.Run(name+"/"+map[int]string{300: "300B", 17_000: "17kB", 200_000: "200kB"}[size],
				func(b *testing.B) { benchmarkLink(b, size, kafka) })
		}
	}
}

func benchmarkLink(b *testing.B, size int, kafka bool) {
	const inFlight = 5
	var received atomic.Int64
	conn, err := net.Dial("tcp", startProxy(b, newServer(), startBroker(b, &received), kafka))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	tokens := make(chan struct{}, inFlight)
	go func() {
		answer := make([]byte, 8)
		for {
			if _, err := io.ReadFull(conn, answer); err != nil {
				return
			}
			<-tokens
		}
	}()
	b.SetBytes(int64(size))
	b.ResetTimer()
	before := processorTime()
	for at := range b.N {
		tokens <- struct{}{}
		if _, err := conn.Write(bigRequest(int32(at), size)); err != nil {
			b.Fatal(err)
		}
	}
	for range inFlight {
		tokens <- struct{}{}
	}
	b.ReportMetric(float64(processorTime()-before)/float64(b.N), "cpu-ns/op")
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
