package builtin

import "github.com/headgate-io/headgate/event"

// From says where FillKeys found the key of an event, in the words of a configuration.
func (k Key) From(b *event.Batch, e *event.Event) string {
	if span := e.Fields[event.FieldKey]; k.JSON != "" && span.Len > 0 && e.Data[span.Off] != 'n' {
		return "json " + k.JSON
	}
	if _, ok := attribute(e, k.CE); ok && k.CE != "" {
		return "ce " + k.CE
	}
	_, ofRequest := k.ofRequest(b)
	for _, h := range b.Headers {
		if ofRequest && k.Header != "" && string(h.Name) == k.Header {
			return "header " + k.Header
		}
	}
	if ofRequest {
		return "Headgate-Key"
	}
	return "ce partitionkey"
}
