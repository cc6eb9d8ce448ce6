package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate-io/headgate/ingest"
	"github.com/headgate-io/headgate/internal/settings"
)

// zeros refuses a 0 that is written where 0 would be taken for nothing written, and so for the default.
func (c *Config) zeros(t settings.Tree) error {
	var all []error
	for _, name := range slices.Sorted(maps.Keys(c.Streams)) {
		s := c.Streams[name]
		all = append(all, settings.At("streams."+name, s.zeros(t.Below("streams."+name))))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Backends)) {
		b, at := c.Backends[name], "backends."+name
		if b.Webhook != nil {
			all = append(all, writtenZero(t, at+".webhook.timeout", b.Webhook.Timeout == 0))
		}
		if b.JetStream != nil {
			all = append(all, writtenZero(t, at+".jetstream.replicas", b.JetStream.Replicas == 0),
				writtenZero(t, at+".jetstream.streams", b.JetStream.Streams == 0))
		}
	}
	return errors.Join(all...)
}

// zeros is that of one stream, before it has its defaults.
func (s *Stream) zeros(t settings.Tree) error {
	return errors.Join(
		writtenZero(t, "partitions", s.Partitions.Max == 0), writtenZero(t, "partitions.max", s.Partitions.Max == 0),
		writtenZero(t, "partitions.min", s.Partitions.Min == 0), writtenZero(t, "partitions.target", s.Partitions.Target == 0),
		writtenZero(t, "adaptive.hold", s.Adaptive.Hold == 0),
		writtenZero(t, "id.window.ids", s.ID.Window.IDs == 0), writtenZero(t, "id.window.age", s.ID.Window.Age == 0),
		writtenZero(t, "linger.waiting", s.Linger.Waiting == 0), writtenZero(t, "linger.idle", s.Linger.Idle == 0),
		writtenZero(t, "frame.bytes", s.Frame.Bytes == 0), writtenZero(t, "frame.events", s.Frame.Events == 0),
		writtenZero(t, "limits.body", s.Limits.Body == 0), writtenZero(t, "limits.inflated", s.Limits.Inflated == 0),
		writtenZero(t, "limits.ratio", s.Limits.Ratio == 0), writtenZero(t, "limits.event", s.Limits.Event == 0),
		writtenZero(t, "limits.events", s.Limits.Events == 0), writtenZero(t, "limits.depth", s.Limits.Depth == 0))
}

func writtenZero(t settings.Tree, path string, zero bool) error {
	if !zero || !t.Has(path) {
		return nil
	}
	return settings.At(path, errors.New("must be more than 0; leave it out for the default"))
}

// contradictions returns where settings that are right by themselves cannot be had together, or not on this machine.
func (c *Config) contradictions() error {
	all := []error{settings.At("data", folderProblem(c.Data)), c.sameAddress()}
	for i, host := range c.Admin.Hosts {
		all = append(all, settings.At("admin.hosts."+strconv.Itoa(i), hostProblem(host)))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Backends)) {
		if js := c.Backends[name].JetStream; js != nil {
			all = append(all, settings.At("backends."+name+".jetstream.max_bytes", c.roomProblem(name, js)))
		}
	}
	return errors.Join(all...)
}

// folderProblem refuses what cannot be a folder. One that is missing is made.
func folderProblem(path string) error {
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at):
			continue
		case err != nil && !strings.Contains(err.Error(), "not a directory"):
			return err
		case err != nil:
			continue // something above is a file, which is said there
		case !info.IsDir():
			return fmt.Errorf("%s is a file, and no folder can be made there; name another, or give another --data", at)
		}
		return nil
	}
}

// sameAddress refuses two listeners at one address, for which the second would blame another process.
func (c *Config) sameAddress() error {
	type place struct{ setting, at string }
	var places []place
	if c.HTTP.Listen != ingest.Nowhere {
		places = append(places, place{"http.listen", c.HTTP.Listen})
	}
	if c.HTTP.TLS.On() {
		at := c.HTTP.TLS.Listen
		if at == "" {
			at = ingest.DefaultTLSListen
		}
		places = append(places, place{"http.tls.listen", at})
	}
	places = append(places, place{"admin.listen", c.Admin.Listen})
	var all []error
	for i, p := range places {
		for _, q := range places[:i] {
			all = append(all, settings.At(p.setting, mustBe(!collide(p.at, q.at), "%s cannot be listened on beside %s (%s); give one of them another port", p.at, q.setting, q.at)))
		}
	}
	return errors.Join(all...)
}

// collide reports whether two addresses cannot both be listened on.
func collide(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || strings.Trim(portA, "0") == "" {
		return false // what is wrong with an address is said elsewhere, and port 0 is any free one
	}
	all := func(host string) bool { return host == "" || host == "::" || host == "0.0.0.0" }
	local := func(host string) string { return strings.Replace(host, "localhost", "127.0.0.1", 1) }
	hostA, hostB = local(hostA), local(hostB)
	ofSix := func(host string) bool { return strings.Contains(host, ":") }
	if hostA == "0.0.0.0" && ofSix(hostB) && hostB != "::" || hostB == "0.0.0.0" && ofSix(hostA) && hostA != "::" {
		return false
	}
	return all(hostA) || all(hostB) || hostA == hostB
}

// address refuses what cannot be listened on.
func address(listen string) error {
	host, port, err := net.SplitHostPort(listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%q is no address; write HOST:PORT, like 127.0.0.1:8080 or :8080 for all interfaces", listen)
	}
	return mustBe(host == "" || validHost(host), "%q: %q is neither an IP address nor a name", listen, host)
}

// validHost reports whether host can be an address or a name: one of digits and dots only is an address.
func validHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	if strings.Trim(host, "0123456789.") == "" || len(host) > 253 {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(host, "."), ".") {
		if label == "" || len(label) > 63 || strings.Trim(strings.ToLower(label), "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

func hostProblem(host string) error {
	u, err := url.Parse(host)
	if err == nil && u.Hostname() != "" {
		return fmt.Errorf("%q is a URL; write the name alone, %s", host, u.Hostname())
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		return fmt.Errorf("%q has a port, which is not looked at; write the name alone, %s", host, name)
	}
	return mustBe(validHost(host), "%q is no host name; it looks like gate.example.com", host)
}

// SureShare is which part of max_bytes each stream has at least, whatever the others hold: one of 32 streams and, each a
// quarter of one, of as many dead letters.
const SureShare = MaxStreams + MaxStreams/4

// roomProblem refuses a max_bytes of which a stream's part is less than its largest event: it would never be stored.
func (c *Config) roomProblem(backend string, js *JetStream) error {
	if js.MaxBytes == 0 {
		return nil
	}
	largest, of := settings.Bytes(0), "limits.event"
	for _, name := range slices.Sorted(maps.Keys(c.Streams)) {
		if s := c.Streams[name]; s.Backend == backend && s.Limits.Event > largest {
			largest, of = s.Limits.Event, "streams."+name+".limits.event"
		}
	}
	if usual := (Stream{}).WithDefaults().Limits.Event; largest == 0 || c.CreatesStreams() && backend == LocalBackend && largest < usual {
		largest, of = usual, "limits.event of a stream made on first use"
	}
	least := SureOf(largest)
	return mustBe(js.MaxBytes >= least, "must be at least %s, got %s: a stream is sure of one part in %d, since there may be %d and their dead letters, "+
		"and it must hold the largest event (%s is %s) and %s around it", least, js.MaxBytes, SureShare, MaxStreams, of, largest, settings.Bytes(FrameOverhead))
}
