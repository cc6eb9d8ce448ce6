package meter

import (
	"encoding/binary"
	"fmt"
)

// Custom returns the content of the custom section called name, nil when there is none. Two of that name are an error:
// which one is meant is open.
func Custom(wasm []byte, name string) (content []byte, err error) {
	found := 0
	err = eachSection(wasm, func(id byte, r *reader) {
		if id == sectionCustom && string(r.name()) == name && r.bad == "" {
			content = r.rest
			found++
		}
		r.bad = "" // see Layout.section
	})
	if err == nil && found > 1 {
		err = fmt.Errorf("it has %d sections called %s, and may have one", found, name)
	}
	return content, err
}

// WithCustom returns a copy of a module with one custom section of that name, at its end; those it had are left out.
func WithCustom(wasm []byte, name string, content []byte) ([]byte, error) {
	out := append(make([]byte, 0, len(wasm)+len(name)+len(content)+16), moduleHeader...)
	err := eachSection(wasm, func(id byte, r *reader) {
		body := r.rest
		if id == sectionCustom && string(r.name()) == name {
			return
		}
		r.bad = ""
		out = appendSection(out, id, body)
	})
	if err != nil {
		return nil, err
	}
	body := append(binary.AppendUvarint(nil, uint64(len(name))), name...)
	return appendSection(out, sectionCustom, append(body, content...)), nil
}
