package settings

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/headgate-io/headgate/internal/plainfile"
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
		doc, err := plainfile.Read(rest, secretBytes)
		if err != nil {
			return "", err
		}
		text = string(doc)
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
