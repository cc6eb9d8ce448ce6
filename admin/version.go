package admin

import (
	"context"
	"strings"

	"github.com/headgate-io/headgate/event"
)

// digestPrefix is how many hexadecimal digits of a digest are enough.
const digestPrefix = 8

// findVersion finds a version by its digest, with or without "sha256:", whole or by its first digits; the
// newest one for an empty digest.
func (s *Server) findVersion(ctx context.Context, name, digest string) (Version, error) {
	p, err := s.deps.Plugins.Plugin(ctx, name)
	if err != nil {
		return Version{}, err
	}
	return pickVersion(p, digest)
}

func pickVersion(p Plugin, digest string) (Version, error) {
	digits := strings.TrimPrefix(strings.ToLower(digest), "sha256:")
	if digits != "" && len(digits) < digestPrefix {
		return Version{}, event.Problemf(event.BadParameter, "give at least %d digits of the digest", digestPrefix)
	}
	var found []Version
	for _, v := range p.Versions {
		if strings.HasPrefix(strings.TrimPrefix(v.Digest, "sha256:"), digits) {
			found = append(found, v)
		}
	}
	switch {
	case len(found) == 0 && digits == "":
		return Version{}, event.Problemf(event.UnknownPlugin, "plugin %q has no version", p.Name)
	case len(found) == 0:
		return Version{}, event.Problemf(event.UnknownPlugin, "plugin %q has no version %s", p.Name, digest)
	case len(found) > 1 && digits != "":
		return Version{}, event.Problemf(event.BadParameter, "%s fits %d versions of %q: give more digits", digest, len(found), p.Name)
	}
	return found[0], nil
}
