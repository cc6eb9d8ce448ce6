package webhook

import (
	"encoding/base64"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net"
	"net/url"
	"strconv"
)

// node is one receiver.
type node struct {
	name   string // its URL without a password: for people, and what partitions are shared out by
	addr   string // host:port to dial
	server string // name that its certificate must have; "" for http
	host   string // Host header
	target string // path and query
	auth   string // Authorization header, "" for none

	circuit circuit
}

// CheckNodes says what is wrong with a list of node URLs, nil if nothing is.
func CheckNodes(urls []string) error {
	_, err := parseNodes(urls, slog.New(slog.DiscardHandler))
	return err
}

func parseNodes(urls []string, log *slog.Logger) (nodes []*node, err error) {
	if len(urls) == 0 {
		return nil, errors.New("no nodes")
	}
	seen := map[string]bool{}
	for _, raw := range urls {
		n, err := parseNode(raw)
		if err != nil {
			return nil, err
		}
		if seen[n.name] {
			return nil, fmt.Errorf("node %s is there twice", n.name)
		}
		seen[n.name] = true
		n.circuit.node, n.circuit.log = n.name, log.With("node", n.name)
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func parseNode(raw string) (*node, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, errors.New("a node is not a URL") // the error repeats it, with a password
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return nil, fmt.Errorf("node %q: must be http://host[:port]/path or https://", u.Redacted())
	case u.Fragment != "":
		return nil, fmt.Errorf("node %q: a fragment is never sent", u.Redacted())
	case u.Port() != "" && !isPort(u.Port()):
		return nil, fmt.Errorf("node %q: the port must be 1 to 65535", u.Redacted())
	}
	n := &node{host: u.Host, target: u.RequestURI()}
	port := u.Port()
	if u.Scheme == "https" {
		n.server = u.Hostname()
	}
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	n.addr = net.JoinHostPort(u.Hostname(), port)
	if u.User != nil {
		password, _ := u.User.Password()
		n.auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
		u.User = nil
	}
	n.name = u.String()
	return n, nil
}

func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// choose returns the node of a partition by rendezvous hashing (Thaler and Ravishankar, 1998): the one with the
// highest weight, so that another list of nodes moves only the partitions of nodes that came or went.
func choose(nodes []*node, partition int32) (best *node) {
	var most uint64
	for _, n := range nodes {
		if w := weight(n.name, partition); best == nil || w > most {
			best, most = n, w
		}
	}
	return best
}

// weight is FNV-1a of both with the finalizer of SplitMix64, without which names that differ in their last
// letters share the partitions out unevenly.
func weight(name string, partition int32) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	h.Write([]byte{0, byte(partition >> 24), byte(partition >> 16), byte(partition >> 8), byte(partition)})
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
