package plugins

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"aead.dev/minisign"
)

// Trust says whose signature makes a module one of ours. A nil *Trust asks for none.
type Trust struct {
	keys     []minisign.PublicKey
	required bool
}

// maxSignature is the largest text of a signature, in bytes: its two comments are free text.
const maxSignature = 4 << 10

// NewTrust reads public keys as minisign writes them: the line that begins with RW, or the whole file. With required a
// module without a signature is refused.
func NewTrust(keys []string, required bool) (*Trust, error) {
	t := &Trust{required: required}
	for _, text := range keys {
		var key minisign.PublicKey
		if err := key.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
			return nil, errors.New("no public key of minisign: it is the line that begins with RW in minisign.pub")
		}
		t.keys = append(t.keys, key)
	}
	if required && len(keys) == 0 {
		return nil, errors.New("a signature is required and no key is trusted: nothing could run")
	}
	return t, nil
}

// Verify checks the signature of a module, both as it is for files hashed before (ED) and for those that are not (Ed). It
// returns whose it is and what the signer says, or why the module is not to be used. Without a signature, and without
// keys, note is what there is to say, and err nil unless a signature is required.
func (t *Trust) Verify(wasm, signature []byte) (note string, err error) {
	switch {
	case len(signature) == 0 && t != nil && t.required:
		return "", errors.New("the module is not signed and plugins.require_signature is on: sign it (minisign -Sm FILE) and upload it with --signature FILE.minisig, or in the header Headgate-Signature")
	case len(signature) == 0:
		return "", nil
	case t == nil || len(t.keys) == 0:
		return "the signature was not checked: plugins.trusted_keys has no key", nil
	case len(signature) > maxSignature:
		return "", fmt.Errorf("the signature has %d bytes, the limit is %d", len(signature), maxSignature)
	}
	var s minisign.Signature
	if err := s.UnmarshalText(signature); err != nil {
		return "", fmt.Errorf("the signature is none of minisign: %s; it is the whole file that ends in .minisig", strings.TrimPrefix(err.Error(), "minisign: "))
	}
	known := slices.DeleteFunc(slices.Clone(t.keys), func(k minisign.PublicKey) bool { return k.ID() != s.KeyID })
	if len(known) == 0 {
		return "", fmt.Errorf("it is signed with the key %s, which is not among plugins.trusted_keys: %s", keyName(s.KeyID), t.names())
	}
	for _, k := range known {
		if minisign.Verify(k, wasm, signature) {
			return fmt.Sprintf("signed with the key %s: %s", keyName(s.KeyID), printable(bytes.TrimSpace([]byte(s.TrustedComment)))), nil
		}
	}
	return "", fmt.Errorf("the signature by %s does not fit: it was made for other bytes than this module, or it or its trusted comment was changed", keyName(s.KeyID))
}

func (t *Trust) names() string {
	var all []string
	for _, k := range t.keys {
		all = append(all, keyName(k.ID()))
	}
	return strings.Join(all, ", ")
}

// keyName is a key id as minisign prints it.
func keyName(id uint64) string { return fmt.Sprintf("%016X", id) }
