// Package compress has the codecs of frames and bodies by name: whole buffers in, whole buffers out, coders
// pooled, output bounded.
package compress

import (
	"errors"
	"fmt"
)

// What decoding can meet beside damaged input. Any other error of AppendDecoded means that the input is not
// what the codec writes, or was cut off.
var (
	// ErrTooLarge: the output would be larger than the caller's limit.
	ErrTooLarge = errors.New("decompressed size over the limit")
	// ErrWindow: the input asks for more memory than MaxWindow to be decoded.
	ErrWindow = errors.New("window over the limit")
)

// MaxWindow is the largest zstd window a decoder accepts, in bytes: what RFC 8878 asks every decoder to
// support, and what the levels of the zstd tool up to 19 stay within.
const MaxWindow = 8 << 20

// Codec is one way to compress. All methods may be called concurrently.
type Codec struct {
	name     string
	encoding string
	coder    coder
}

type coder interface {
	append(dst, src []byte) []byte
	appendDecoded(dst, src []byte, limit int) ([]byte, error)
}

// codecs is read only.
var codecs = []Codec{
	{name: "zstd", encoding: "zstd", coder: zstdCoder{}},
	{name: "s2", encoding: "s2", coder: s2Coder{}},
	{name: "lz4", encoding: "lz4", coder: lz4Coder{}},
	{name: "gzip", encoding: "gzip", coder: gzipCoder{}},
	{name: "none", encoding: "", coder: plainCoder{}},
}

// ByName returns the codec called zstd, s2, lz4, gzip or none.
func ByName(name string) (*Codec, error) {
	for i := range codecs {
		if codecs[i].name == name {
			return &codecs[i], nil
		}
	}
	return nil, fmt.Errorf("unknown codec %q: use zstd, s2, lz4, gzip or none", name)
}

// ByEncoding returns the codec for one token of a Content-Encoding header; an absent header ("") and
// identity are none.
func ByEncoding(encoding string) (*Codec, error) {
	if encoding == "" || encoding == "identity" {
		return ByName("none")
	}
	for i := range codecs {
		if codecs[i].encoding == encoding {
			return &codecs[i], nil
		}
	}
	return nil, fmt.Errorf("unknown content encoding %q", encoding)
}

// Name returns the name used in configuration.
func (c *Codec) Name() string { return c.name }

// ContentEncoding returns the value of the Content-Encoding header; empty for none: no header.
func (c *Codec) ContentEncoding() string { return c.encoding }

// Append appends src compressed as one complete frame that decodes without what came before it, with a
// checksum where the codec has one.
func (c *Codec) Append(dst, src []byte) []byte { return c.coder.append(dst, src) }

// AppendDecoded appends what src decompresses to: one frame or several in a row, skippable ones among them.
// Output is counted as it comes and never exceeds limit bytes (ErrTooLarge), whatever sizes src declares.
// On any error dst comes back as it was.
func (c *Codec) AppendDecoded(dst, src []byte, limit int) ([]byte, error) {
	out, err := c.coder.appendDecoded(dst, src, limit)
	if err != nil {
		return out[:len(dst)], fmt.Errorf("decompress %s: %w", c.name, err)
	}
	return out, nil
}

type plainCoder struct{}

func (plainCoder) append(dst, src []byte) []byte { return append(dst, src...) }

func (plainCoder) appendDecoded(dst, src []byte, limit int) ([]byte, error) {
	if len(src) > limit {
		return dst, ErrTooLarge
	}
	return append(dst, src...), nil
}
