//go:build !wasm || tinygo

package plugin

func lookUp(text []byte, name string) *member { return lookUpInGo(text, name) }
