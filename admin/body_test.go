package admin

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// deadlines notes what is set of a connection.
type deadlines struct {
	*httptest.ResponseRecorder
	read, write *time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error  { d.read = &at; return nil }
func (d *deadlines) SetWriteDeadline(at time.Time) error { d.write = &at; return nil }

// What has been read may take longer than reading it: the times of the server would end a compilation after a minute, and keep back
// the answer to one.
func TestWorkMayTakeLongerThanReading(t *testing.T) {
	r := httptest.NewRequest("PUT", "/v1/plugins/p", strings.NewReader("abc"))
	r.Header.Set("Content-Type", "application/wasm")
	d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	if body, err := readBody(d, r, "application/wasm", 3); err != nil || string(body) != "abc" {
		t.Fatalf("%q %v", body, err)
	}
	if d.read == nil || !d.read.IsZero() || d.write == nil || time.Until(*d.write) < requestTimeout {
		t.Errorf("read until %v, written until %v", d.read, d.write)
	}
	d = &deadlines{ResponseRecorder: httptest.NewRecorder()}
	r = httptest.NewRequest("PUT", "/v1/plugins/p", strings.NewReader("abcd"))
	r.Header.Set("Content-Type", "application/wasm")
	if _, err := readBody(d, r, "application/wasm", 3); err == nil || d.read != nil || d.write != nil {
		t.Errorf("%v; read until %v, written until %v", err, d.read, d.write)
	}
}
