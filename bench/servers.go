package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// server is what is measured, and how it is asked what it has passed on.
type server struct {
	*process
	url    string                                 // takes events
	quic   string                                 // address of the UDP listener, of a gateway
	passed func(ctx context.Context) (int, error) // events since sink was reset
}

// floorServer starts the floor.
func floorServer(ctx context.Context, sink sinkClient, filter bool) (*server, error) {
	p, err := startRole(ctx, "floor", "-sink="+sink.url, "-filter="+strconv.FormatBool(filter))
	if err != nil {
		return nil, err
	}
	return &server{process: p, url: "http://" + p.address + "/", passed: sink.passed}, nil
}

// bareServer starts a server that only answers.
func bareServer(ctx context.Context) (*server, error) {
	p, err := startRole(ctx, "bare")
	if err != nil {
		return nil, err
	}
	return &server{process: p, url: "http://" + p.address + "/"}, nil
}

// passed is how many events the sink has.
func (s sinkClient) passed(ctx context.Context) (int, error) {
	c, err := s.counts(ctx)
	if err == nil && c.Trouble != "" {
		err = fmt.Errorf("the sink complains: %s", c.Trouble)
	}
	return c.Events, err
}

// gateway is how one is started.
type gateway struct {
	program  string // the binary
	folder   string // for its data; must not exist
	embedded bool   // keep the events in the embedded JetStream, instead of sending them to the sink
	plugin   string // module; empty: the built-in key
	patient  bool   // clients that stall are not cut off within a minute
}

const (
	streamName = "bench"
	eventsPath = "/v1/streams/" + streamName + "/events?ack=accepted"
)

// start runs the gateway with all its defaults but for where the events go.
func (g gateway) start(ctx context.Context, sink sinkClient) (*server, error) {
	if err := os.MkdirAll(g.folder, 0o755); err != nil {
		return nil, err
	}
	config := filepath.Join(g.folder, "config.yaml")
	if err := os.WriteFile(config, g.config(sink), 0o644); err != nil {
		return nil, err
	}
	p, err := start(ctx, io.Discard, g.program, "serve", "--config", config)
	if err != nil {
		return nil, err
	}
	s, err := g.ready(ctx, p, sink)
	if err == nil && g.plugin != "" {
		err = g.activate(ctx, s)
	}
	if err != nil {
		p.stop()
		return nil, err
	}
	return s, nil
}

func (g gateway) data() string { return filepath.Join(g.folder, "data") }

// config is JSON, and so YAML.
func (g gateway) config(sink sinkClient) []byte {
	type object = map[string]any
	stream := object{}
	if g.plugin == "" {
		stream["key"] = object{"json": "/remote_ip"}
	}
	config := object{
		"data": g.data(), "http": object{"listen": "127.0.0.1:0"}, "admin": object{"listen": "127.0.0.1:0"}, "quic": object{"listen": "127.0.0.1:0"},
		"log": object{"level": "warn"}, "streams": object{streamName: stream},
	}
	if g.patient {
		config["http"].(object)["read_timeout"] = "1m"
	}
	if !g.embedded {
		config["backends"] = object{"sink": object{"webhook": object{"nodes": []string{sink.url}}}}
		stream["backend"] = "sink"
	}
	text, err := json.Marshal(config)
	if err != nil {
		panic("BUG: bench: marshal the configuration: " + err.Error())
	}
	return text
}

// ready waits for the gateway to say where it listens.
func (g gateway) ready(ctx context.Context, p *process, sink sinkClient) (*server, error) {
	var at struct{ HTTP, Admin, QUIC string }
	err := p.wait(ctx, "the gateway does not become ready", func() (bool, error) {
		text, err := os.ReadFile(filepath.Join(g.data(), "run.json"))
		return err == nil && json.Unmarshal(text, &at) == nil, nil
	})
	if err != nil {
		return nil, err
	}
	p.address = at.Admin
	s := &server{process: p, url: "http://" + at.HTTP + eventsPath, quic: at.QUIC, passed: sink.passed}
	if g.embedded {
		s.passed = func(ctx context.Context) (int, error) { return delivered(ctx, at.Admin) }
	}
	return s, nil
}

// activate uploads the plugin and puts it to work.
func (g gateway) activate(ctx context.Context, s *server) error {
	for _, args := range [][]string{
		{"plugin", "push", "accesslog", g.plugin},
		{"plugin", "activate", "--stream", streamName, "accesslog", "--config", `{"drop_status_from":500}`},
	} {
		p, err := start(ctx, io.Discard, g.program, append(args, "--admin-url", "http://"+s.address)...)
		if err != nil {
			return err
		}
		if <-p.ended; p.err != nil {
			return p.failure()
		}
	}
	return nil
}

var deliveredLine = regexp.MustCompile(`(?m)^headgate_delivered_events_total\{stream="` + streamName + `"\} (\S+)$`)

// delivered reads from the gateway's metrics how many events its backend has confirmed.
func delivered(ctx context.Context, admin string) (int, error) {
	text, err := get(ctx, "http://"+admin+"/metrics")
	if err != nil {
		return 0, err
	}
	m := deliveredLine.FindSubmatch(text)
	if m == nil {
		return 0, nil // nothing yet
	}
	n, err := strconv.ParseFloat(string(m[1]), 64)
	return int(n), err
}
