package admin

import (
	"net/http"

	"github.com/headgate-io/headgate/event"
)

// explain says where the events of a key go; without the parameter key, those that have none.
func (s *Server) explain(w http.ResponseWriter, r *http.Request) error {
	var key, source []byte
	ordering := ""
	for name, list := range r.URL.Query() {
		if len(list) != 1 || name != "key" && name != "source" && name != "ordering" {
			return event.Problemf(event.BadParameter, "give key=KEY, source=SOURCE for a key that is split, and ordering=ORDERING that a request asks for, each once")
		}
		if name == "ordering" {
			ordering = list[0]
			continue
		}
		if value := append([]byte{}, list[0]...); name == "key" {
			key = value
		} else {
			source = value
		}
	}
	doc, err := s.deps.Routing.Explain(r.Context(), r.PathValue("stream"), key, source, ordering)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, doc)
}
