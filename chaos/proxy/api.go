package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The API: Toxiproxy's own, and beside it
//
//	POST   /rules                  a rule, or a list of rules: all or none is added
//	GET    /rules                  the rules with their counts
//	DELETE /rules/{name}           releases what the rule holds, and removes it; its last counts
//	POST   /rules/{name}/release   releases what the rule holds
//	GET    /events?from=N&wait_ms=M  hits from number N on; waits for the first
//	GET    /links                  frames that passed, by link and API
//
// POST /proxies and /populate read "kafka": true. GET /links names the proxies that read frames.
type api struct {
	server   *toxiproxy.ApiServer
	registry *registry
}

// proxySpec is a proxy as configuration files and requests write it.
type proxySpec struct {
	Name     string `json:"name"`
	Listen   string `json:"listen"`
	Upstream string `json:"upstream"`
	Enabled  *bool  `json:"enabled"`
	Kafka    bool   `json:"kafka"`
}

func (a *api) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /proxies", a.createProxy)
	mux.HandleFunc("POST /populate", a.populate)
	mux.HandleFunc("GET /rules", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, a.registry.rules.list())
	})
	mux.HandleFunc("POST /rules", a.addRules)
	mux.HandleFunc("DELETE /rules/{name}", a.removeRule)
	mux.HandleFunc("POST /rules/{name}/release", a.releaseRule)
	mux.HandleFunc("GET /events", a.showEvents)
	mux.HandleFunc("GET /links", a.showLinks)
	mux.Handle("/", a.server.Routes())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.UserAgent(), "Mozilla/") { // as Toxiproxy does: no web page may call it
			http.Error(w, "User agent not allowed", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // a client that has gone reads no answer
}

func writeError(w http.ResponseWriter, status int, err error) {
	writeJSON(w, status, map[string]any{"error": err.Error(), "status": status})
}

// newProxy makes a proxy that is not started. Its toxics are there before its first connection.
func (a *api) newProxy(spec proxySpec) (*toxiproxy.Proxy, error) {
	if spec.Name == "" || spec.Upstream == "" {
		return nil, fmt.Errorf("a proxy needs name and upstream")
	}
	proxy := toxiproxy.NewProxy(a.server, spec.Name, spec.Listen, spec.Upstream)
	if !spec.Kafka {
		a.registry.forget(spec.Name)
		return proxy, nil
	}
	return proxy, readFrames(proxy, a.registry.declare(spec.Name, spec.Upstream))
}

func isEnabled(spec proxySpec) bool { return spec.Enabled == nil || *spec.Enabled }

func show(proxy *toxiproxy.Proxy) map[string]any {
	return map[string]any{
		"name": proxy.Name, "listen": proxy.Listen, "upstream": proxy.Upstream,
		"enabled": proxy.Enabled, "toxics": proxy.Toxics.GetToxicArray(),
	}
}

func (a *api) createProxy(w http.ResponseWriter, r *http.Request) {
	var spec proxySpec
	if err := json.NewDecoder(r.Body).Decode(&spec); err != nil {
		writeError(w, http.StatusBadRequest, err)
		return
	}
	if _, err := a.server.Collection.Get(spec.Name); err == nil {
		writeError(w, http.StatusConflict, toxiproxy.ErrProxyAlreadyExists)
		return
	}
	proxy, err := a.newProxy(spec)
	if err != nil {
		writeError(w, http.StatusBadRequest, err)
		return
	}
	if err := a.server.Collection.Add(proxy, isEnabled(spec)); err != nil {
		writeError(w, http.StatusInternalServerError, err)
		return
	}
	writeJSON(w, http.StatusCreated, show(proxy))
}

func (a *api) populate(w http.ResponseWriter, r *http.Request) {
	proxies, err := a.populateFrom(r.Body)
	if err != nil {
		writeError(w, http.StatusBadRequest, err)
		return
	}
	shown := make([]map[string]any, len(proxies))
	for at, proxy := range proxies {
		shown[at] = show(proxy)
	}
	writeJSON(w, http.StatusCreated, map[string]any{"proxies": shown})
}

func (a *api) populateFile(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = a.populateFrom(file)
	return err
}

func (a *api) populateFrom(data io.Reader) ([]*toxiproxy.Proxy, error) {
	var specs []proxySpec
	if err := json.NewDecoder(data).Decode(&specs); err != nil {
		return nil, err
	}
	var proxies []*toxiproxy.Proxy
	for _, spec := range specs {
		proxy, err := a.newProxy(spec)
		if err != nil {
			return proxies, err
		}
		proxy, err = a.server.Collection.AddOrReplace(proxy, isEnabled(spec))
		if err != nil {
			return proxies, fmt.Errorf("%s: %w", spec.Name, err)
		}
		proxies = append(proxies, proxy)
	}
	return proxies, nil
}

func (a *api) addRules(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		writeError(w, http.StatusBadRequest, err)
		return
	}
	texts := []json.RawMessage{data}
	if strings.HasPrefix(strings.TrimSpace(string(data)), "[") {
		if err := json.Unmarshal(data, &texts); err != nil {
			writeError(w, http.StatusBadRequest, err)
			return
		}
	}
	made := make([]*rule, len(texts))
	for at, text := range texts {
		if made[at], err = newRule(text); err != nil {
			writeError(w, http.StatusBadRequest, err)
			return
		}
		if err := a.checkLinks(made[at]); err != nil {
			writeError(w, http.StatusBadRequest, err)
			return
		}
	}
	for at, one := range made {
		if err := a.registry.rules.add(one); err != nil {
			for _, added := range made[:at] {
				a.registry.rules.remove(added.Name)
			}
			writeError(w, http.StatusConflict, err)
			return
		}
	}
	writeJSON(w, http.StatusCreated, a.registry.rules.list())
}

// checkLinks refuses a link whose frames are not read.
func (a *api) checkLinks(made *rule) error {
	known := a.registry.all()
	for _, pattern := range made.Links {
		isKnown := false
		for name := range known {
			isKnown = isKnown || matches(pattern, name)
		}
		if !isKnown {
			return fmt.Errorf("link %q: no proxy of that name reads Kafka's frames", pattern)
		}
	}
	return nil
}

func (a *api) removeRule(w http.ResponseWriter, r *http.Request) {
	removed := a.registry.rules.remove(r.PathValue("name"))
	if removed == nil {
		writeError(w, http.StatusNotFound, fmt.Errorf("no rule %q", r.PathValue("name")))
		return
	}
	writeJSON(w, http.StatusOK, removed)
}

func (a *api) releaseRule(w http.ResponseWriter, r *http.Request) {
	if !a.registry.rules.release(r.PathValue("name")) {
		writeError(w, http.StatusNotFound, fmt.Errorf("no rule %q", r.PathValue("name")))
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (a *api) showEvents(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(r.URL.Query().Get("from"))
	wait, _ := strconv.Atoi(r.URL.Query().Get("wait_ms"))
	patience := time.Duration(min(wait, 25_000)) * time.Millisecond
	events, next := a.registry.rules.since(from, patience)
	if events == nil {
		events = []event{}
	}
	writeJSON(w, http.StatusOK, map[string]any{"events": events, "next": next})
}

func (a *api) showLinks(w http.ResponseWriter, _ *http.Request) {
	shown := map[string]any{}
	for name, one := range a.registry.all() {
		requests, answers := map[string]uint64{}, map[string]uint64{}
		for key := range one.counts.requests {
			api := kmsg.NameForKey(int16(key))
			if count := one.counts.requests[key].Load(); count > 0 {
				requests[api] = count
			}
			if count := one.counts.answers[key].Load(); count > 0 {
				answers[api] = count
			}
		}
		shown[name] = map[string]any{
			"requests": requests, "answers": answers, "unread": one.counts.unread.Load(),
		}
	}
	writeJSON(w, http.StatusOK, shown)
}
