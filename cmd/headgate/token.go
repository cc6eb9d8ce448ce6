package main

import (
	"os"
	"strings"

	"github.com/headgate-io/headgate/internal/settings"
)

// tokenVariable holds the token of client commands that are given none.
const tokenVariable = "HEADGATE_TOKEN"

const tokenHelp = "bearer token: file:PATH, env:NAME, or the token itself, which other users of the machine can then see; also " + tokenVariable

// resolveToken returns the token that given names, or else the environment; empty for none. Of a file with several the
// first counts.
func resolveToken(given string) (string, error) {
	from := "--token"
	if given == "" {
		given, from = os.Getenv(tokenVariable), tokenVariable
	}
	if !strings.Contains(given, ":") { // which no token does
		return given, nil
	}
	text, err := settings.ReadSecret(given)
	if err != nil {
		return "", usagef("%s: %v", from, err)
	}
	token, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(token), nil
}
