//go:build !tinygo

package plugin

// lookUp is lookUpInGo, faster for text in a batch whose names have no escapes.
//
//go:noescape
func lookUp(text []byte, name string) *member
