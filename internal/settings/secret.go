package settings

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// secretBytes bounds the file of a secret: more is some other file.
const secretBytes = 64 << 10

// ReadSecret returns what file:PATH or env:NAME holds, without white space around it. Errors never contain a secret, nor
// what was written in the place of file: or env:, which may be one.
func ReadSecret(ref string) (string, error) {
	kind, rest, _ := strings.Cut(ref, ":")
	var text string
	switch {
	case kind == "env" && rest != "":
		text = os.Getenv(rest)
		if strings.TrimSpace(text) == "" {
			return "", fmt.Errorf("the variable %s is not set, or empty", rest)
		}
	case kind == "file" && rest != "":
		var err error
		if text, err = readBounded(rest); err != nil {
			return "", err
		}
		if strings.TrimSpace(text) == "" {
			return "", fmt.Errorf("the file %s is empty", rest)
		}
	case ref == "":
		return "", errors.New("is missing; write file:PATH or env:NAME")
	default:
		return "", errors.New("must be file:PATH or env:NAME; the secret itself does not belong here")
	}
	return strings.TrimSpace(text), nil
}

func readBounded(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	doc, err := io.ReadAll(io.LimitReader(f, secretBytes+1))
	if err == nil && len(doc) > secretBytes {
		err = fmt.Errorf("%s is larger than %s: not a secret", path, Bytes(secretBytes))
	}
	return string(doc), err
}
