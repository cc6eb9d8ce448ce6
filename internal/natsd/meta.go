package natsd

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/minio/highwayhash"

	"github.com/headgate-io/headgate/internal/wholefile"
)

// Files of the server that define a stream: the definition, and a sum of it. With either one damaged the server passes over the
// stream as if it were not there, with all messages that are.
const (
	metaName    = "meta.inf"
	metaSumName = "meta.sum"
)

// mendMeta keeps a copy of a stream's definition, in the folder copies, and puts a damaged one right: from the copy, or
// when only the sum is wrong.
func mendMeta(stream, copies string, log *slog.Logger) error {
	name := filepath.Base(stream)
	doc, errDoc := os.ReadFile(filepath.Join(stream, metaName))
	sum, errSum := os.ReadFile(filepath.Join(stream, metaSumName))
	at := filepath.Join(copies, name+".inf")
	kept, _ := os.ReadFile(at)
	right, err := metaSum(name, doc)
	if err != nil {
		return err
	}
	if errDoc == nil && errSum == nil && bytes.Equal(sum, right) {
		if bytes.Equal(doc, kept) {
			return nil
		}
		return errors.Join(os.MkdirAll(copies, 0o700), wholefile.Write(at, doc))
	}
	switch {
	case defines(kept, name):
		doc = kept
	case !defines(doc, name):
		return nil // the server says that it is missing
	}
	if right, err = metaSum(name, doc); err != nil {
		return err
	}
	if err := errors.Join(wholefile.Write(filepath.Join(stream, metaName), doc), wholefile.Write(filepath.Join(stream, metaSumName), right)); err != nil {
		return fmt.Errorf("mend the definition of %s: %w", name, err)
	}
	log.Warn("a damaged definition of a stream was mended, no message is lost", "stream", name)
	return nil
}

// metaSum is what the server writes beside a definition.
func metaSum(name string, doc []byte) ([]byte, error) {
	key := sha256.Sum256([]byte(name))
	sum, err := highwayhash.New64(key[:])
	if err != nil {
		return nil, err
	}
	sum.Write(doc)
	return []byte(hex.EncodeToString(sum.Sum(nil))), nil
}

// defines tells whether a document defines the stream of that name.
func defines(doc []byte, name string) bool {
	var d struct {
		Name string `json:"name"`
	}
	return json.Unmarshal(doc, &d) == nil && d.Name == name
}
