// Package auth knows who may do what: bearer tokens, the callers they stand for, and the streams and actions of each.
package auth

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/headgate-io/headgate/event"
)

// Action is what a token lets its bearer do.
type Action string

// The actions. Admin includes Read; neither includes Send.
const (
	Send  Action = "send"  // post events
	Read  Action = "read"  // look at streams and plugins, and read events back, dead letters too
	Admin Action = "admin" // change streams and plugins
)

// Actions returns all there are.
func Actions() []Action { return []Action{Send, Read, Admin} }

// All stands for every stream, and for what belongs to none, such as the plugins.
const All = "*"

// Token is one caller. Several secrets stand for the same caller, so that one can be replaced by another.
type Token struct {
	ID      string
	Secrets []string
	Streams []string // names, or All; a dead letter goes with its stream
	Actions []Action
}

// Tokens finds callers by their secrets, which it keeps as keyed hashes. All methods may be called concurrently.
type Tokens struct {
	grants  atomic.Pointer[map[uint64]*grant] // by the first bytes of the hash
	hashers sync.Pool                         // of *hasher
}

// grant is a Token under one of its secrets.
type grant struct {
	token  *Token
	id     []byte
	digest [sha256.Size]byte
}

type hasher struct {
	hash.Hash
	sum [sha256.Size]byte
}

// New returns the tokens under a key of their own, which no other process can know. Two secrets must differ.
func New(all []Token) (*Tokens, error) {
	key := make([]byte, sha256.BlockSize)
	rand.Read(key) // never fails
	t := &Tokens{}
	t.hashers.New = func() any { return &hasher{Hash: hmac.New(sha256.New, key)} }
	return t, t.Replace(all)
}

// Replace puts other tokens in force, all at once, or none when there is an error.
func (t *Tokens) Replace(all []Token) error {
	grants := map[uint64]*grant{}
	for i := range all {
		for _, secret := range all[i].Secrets {
			g := &grant{token: &all[i], id: []byte(all[i].ID), digest: t.digest([]byte(secret))}
			if other := grants[place(&g.digest)]; other != nil {
				return fmt.Errorf("tokens %q and %q have the same secret", other.token.ID, g.token.ID)
			}
			grants[place(&g.digest)] = g
		}
	}
	t.grants.Store(&grants)
	return nil
}

func place(digest *[sha256.Size]byte) uint64 { return binary.LittleEndian.Uint64(digest[:]) }

func (t *Tokens) digest(secret []byte) [sha256.Size]byte {
	h := t.hashers.Get().(*hasher)
	defer t.hashers.Put(h)
	h.Reset()
	h.Write(secret)
	h.Sum(h.sum[:0])
	return h.sum
}

// Sender returns the caller who posts events to a stream with this value of Authorization (nil: there was none), or why
// not: unauthorized or forbidden. The id must not be changed.
func (t *Tokens) Sender(authorization, stream []byte) (id []byte, no *event.Problem) {
	g, no := t.find(authorization)
	if no == nil {
		no = g.allows(Send, stream)
	}
	if no != nil {
		return nil, no
	}
	return g.id, nil
}

// Permit reports, as an *event.Problem, why a caller with this value of Authorization may not do what it wants; the
// stream is empty for what belongs to none.
func (t *Tokens) Permit(authorization, action, stream string) error {
	g, no := t.find([]byte(authorization))
	if no == nil {
		no = g.allows(Action(action), []byte(stream))
	}
	if no != nil {
		return no
	}
	return nil
}

// find returns the grant of who holds the token. The map tells by its timing of nothing but a hash that nobody else can
// compute; the hash as a whole is compared in constant time.
func (t *Tokens) find(authorization []byte) (*grant, *event.Problem) {
	if len(authorization) == 0 {
		return nil, event.Problemf(event.Unauthorized, "this gateway wants a token: send Authorization: Bearer TOKEN")
	}
	scheme, secret, _ := bytes.Cut(authorization, []byte{' '})
	secret = bytes.TrimLeft(secret, " ")
	if !bytes.EqualFold(scheme, []byte("Bearer")) || len(secret) == 0 {
		return nil, event.Problemf(event.Unauthorized, "credentials are sent as Authorization: Bearer TOKEN")
	}
	digest := t.digest(secret)
	g := (*t.grants.Load())[place(&digest)]
	if g == nil || subtle.ConstantTimeCompare(g.digest[:], digest[:]) != 1 {
		return nil, event.Problemf(event.Unauthorized, "the token is not one of this gateway's")
	}
	return g, nil
}

// allows returns nil, or names what is missing.
func (g *grant) allows(action Action, stream []byte) *event.Problem {
	t := g.token
	if !slices.Contains(t.Actions, action) && (action != Read || !slices.Contains(t.Actions, Admin)) {
		return event.Problemf(event.Forbidden, "token %q lacks the action %s; it has %s", t.ID, action, list(t.Actions))
	}
	name := bytes.TrimSuffix(stream, []byte(event.DeadLetterSuffix))
	for _, s := range t.Streams {
		if s == All || len(stream) > 0 && s == string(name) {
			return nil
		}
	}
	if len(stream) == 0 {
		return event.Problemf(event.Forbidden, "this call is about more than one stream and wants a token for all of them (streams: [%q]); token %q is for %s", All, t.ID, list(t.Streams))
	}
	return event.Problemf(event.Forbidden, "token %q is not for stream %q; it is for %s", t.ID, stream, list(t.Streams))
}

func list[T ~string](all []T) string {
	words := make([]string, len(all))
	for i, a := range all {
		words[i] = string(a)
	}
	return strings.Join(words, ", ")
}
