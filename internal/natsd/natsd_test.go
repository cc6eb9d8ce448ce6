package natsd_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/internal/leaks"
	"github.com/headgate-io/headgate/internal/natsd"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func start(t *testing.T, cfg natsd.Config) *natsd.Server {
	t.Helper()
	s, err := natsd.Start(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func connect(t *testing.T, s *natsd.Server) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := s.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return nc, js
}

func TestTwoServersKeepTheirStoresOverRestarts(t *testing.T) {
	root := t.TempDir()
	for round := range 3 {
		data := start(t, natsd.Config{Name: "data", Dir: filepath.Join(root, "data"), MaxStore: 16 << 20})
		control := start(t, natsd.Config{Name: "control", Dir: filepath.Join(root, "control"), MaxStore: 16 << 20})
		for name, s := range map[string]*natsd.Server{"data": data, "control": control} {
			if got, want := publishOne(t, s, name), uint64(round+1); got != want {
				t.Errorf("%s, round %d: %d messages, want %d", name, round, got, want)
			}
		}
		data.Close()
		control.Close()
	}
}

// publishOne adds a message to the stream called name and returns how many it has.
func publishOne(t *testing.T, s *natsd.Server, name string) uint64 {
	t.Helper()
	_, js := connect(t, s)
	stream, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{"s"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s", []byte(name)); err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return info.State.Msgs
}

func TestLargestMessageIs8MiB(t *testing.T) {
	s := start(t, natsd.Config{Name: "data", Dir: t.TempDir(), MaxStore: 64 << 20})
	nc, js := connect(t, s)
	if got := nc.MaxPayload(); got != 8<<20 {
		t.Fatalf("largest message is %d bytes", got)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s", make([]byte, 8<<20)); err != nil {
		t.Fatal(err)
	}
}

func TestStartSaysWhyItFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	_, err := natsd.Start(t.Context(), natsd.Config{Name: "data", Dir: file}, slog.New(slog.NewTextHandler(&log, nil)))
	if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "JetStream") {
		t.Errorf("error %v does not name folder and cause", err)
	}
	if !strings.Contains(log.String(), "server=data") {
		t.Errorf("log line without the server's name: %s", log.String())
	}
}

func TestStartHeedsTheEndOfItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := natsd.Start(ctx, natsd.Config{Name: "data", Dir: t.TempDir()}, slog.New(slog.DiscardHandler))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// lines passes on what is logged.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

func TestStartHasADeadline(t *testing.T) {
	log := make(lines, 1000)
	cfg := natsd.Config{Name: "data", Dir: t.TempDir(), StartTimeout: 1}
	_, err := natsd.Start(t.Context(), cfg, slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err == nil || !strings.Contains(err.Error(), "not ready") {
		t.Fatalf("error %v", err)
	}
	for !strings.Contains(<-log, "Server Exiting") { // it stops by itself when it is through
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, cfg := range []natsd.Config{{Name: "x"}, {Dir: "x"}, {Name: "x", Dir: "x", MaxPayload: -1}, {Name: "x", Dir: "x", MaxStore: -1}} {
		if _, err := natsd.Start(t.Context(), cfg, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

func TestConnectAfterCloseFails(t *testing.T) {
	s := start(t, natsd.Config{Name: "data", Dir: t.TempDir()})
	nc, _ := connect(t, s)
	s.Close()
	s.Close()
	if !nc.IsClosed() {
		t.Error("Close left a connection open")
	}
	if _, err := s.Connect("late"); err == nil {
		t.Error("connected to a closed server")
	}
}

// A server that handled signals would end the test's process or swallow the signal.
func TestSignalsAreLeftToTheProgram(t *testing.T) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	defer signal.Stop(caught)
	s := start(t, natsd.Config{Name: "data", Dir: t.TempDir()})
	nc, _ := connect(t, s)
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	<-caught
	if err := nc.Flush(); err != nil {
		t.Error(err)
	}
}
