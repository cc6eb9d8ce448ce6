package certs

import (
	"crypto/sha256"
	"encoding/base64"
)

// Fingerprint is the SHA-256 of the public key of the certificate in force (of its SubjectPublicKeyInfo), in base64, as
// browsers and curl pin one.
func (k *Keeper) Fingerprint() string {
	sum := sha256.Sum256(k.now.Load().Leaf.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}
