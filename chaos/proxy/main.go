// The Toxiproxy server of the lab: Toxiproxy 2.12 as a library, and links that read Kafka's frames.
//
// Options, API, configuration file and toxics are Toxiproxy's. A proxy that is created with
// "kafka": true has two hidden toxics from its first byte on, one a direction, which follow the
// frames (frames.go) and apply the rules of the link (rules.go). Rules come and go through the API
// (api.go), the toxics stay: so frames never lose their alignment.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// Rules counts the versions of the rules' API.
const Rules = 2

func main() {
	host := flag.String("host", "localhost", "host of the API")
	port := flag.String("port", "8474", "port of the API")
	config := flag.String("config", "", "JSON file with proxies to create")
	version := flag.Bool("version", false, "print the version")
	fields := flag.Bool("fields", false, "print the fields and versions of all APIs, as fields.json")
	flag.Parse()
	if *fields {
		fmt.Print(catalogue())
		return
	}
	if *version {
		fmt.Printf("toxiproxy-server with rules %d version %s\n", Rules, toxiproxy.Version)
		return
	}
	if err := serve(net.JoinHostPort(*host, *port), *config); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func serve(address, config string) error {
	logger := newLogger()
	toxiproxyServer := toxiproxy.NewServer(
		toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), logger,
	)
	api := &api{server: toxiproxyServer, registry: newRegistry()}
	if config != "" {
		if err := api.populateFile(config); err != nil {
			return fmt.Errorf("%s: %w", config, err)
		}
	}
	server := &http.Server{
		Addr:         address,
		Handler:      api.routes(),
		ReadTimeout:  15 * time.Second,
		WriteTimeout: 40 * time.Second,
		IdleTimeout:  60 * time.Second,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	select {
	case err := <-ended:
		return err
	case <-signals:
		return server.Close()
	}
}

// newLogger writes JSON lines to standard output, from LOG_LEVEL on.
func newLogger() zerolog.Logger {
	logger := zerolog.New(os.Stdout).With().Timestamp().Logger()
	if level, err := zerolog.ParseLevel(os.Getenv("LOG_LEVEL")); err == nil {
		return logger.Level(level)
	}
	return logger
}
