package problem

import (
	"net/http"

	"github.com/headgate-io/headgate/event"
)

func title(status int) string { return http.StatusText(status) }

// table is read only.
var table = map[event.Code]Kind{
	event.MalformedJSON: {400, false}, event.TrailingData: {400, false}, event.InvalidUTF8: {400, false},
	event.AmbiguousContentType: {400, false}, event.BadFraming: {400, false}, event.AmbiguousFraming: {400, false},
	event.IncompleteBody: {400, true}, event.BadGzip: {400, false}, event.BadZstd: {400, false},
	event.BadDeflate: {400, false}, event.BadBr: {400, false}, event.BadSnappy: {400, false},
	event.ZstdWindow: {400, false}, event.BadParameter: {400, false}, event.LooserOrdering: {400, false}, event.BadConfiguration: {400, false},
	event.Unauthorized: {401, false}, event.Forbidden: {403, false},
	event.NotFound: {404, false}, event.UnknownStream: {404, false}, event.BadStreamName: {404, false},
	event.UnknownPlugin: {404, false}, event.UnknownLetter: {404, false}, event.MethodNotAllowed: {405, false},
	event.RequestTimeout: {408, true}, event.IdempotencyInFlight: {409, true}, event.SameIDFailed: {409, true}, event.ReplayRunning: {409, true},
	event.PluginInUse: {409, false}, event.NothingToDo: {409, false}, event.ManagedByFile: {409, false}, event.PartitionsFixed: {409, false},
	event.EtagMismatch: {412, false},
	event.BodyTooLarge: {413, false}, event.InflatedTooLarge: {413, false}, event.TooManyEvents: {413, false},
	event.EventTooLarge:        {413, false},
	event.RequestTooLarge:      {413, false},
	event.UnsupportedMediaType: {415, false}, event.UnsupportedCoding: {415, false},
	event.TooDeep: {422, false}, event.DuplicateName: {422, false}, event.KeyRequired: {422, false},
	event.KeyNotScalar: {422, false}, event.KeyTooLong: {422, false}, event.IDNotScalar: {422, false}, event.IDTooLong: {422, false}, event.PluginRejected: {422, false},
	event.FilterRejected: {422, false},
	event.PluginFailed:   {422, false}, event.PluginRefused: {422, false}, event.InvalidCloudEvent: {422, false},
	event.IdempotencyMismatch: {422, false}, event.StrictRejected: {422, false}, event.BackendRefused: {422, false},
	event.EarlyData: {425, true}, event.CallerRate: {429, true}, event.KeyRate: {429, true},
	event.HeadersTooLarge: {431, false},
	event.Internal:        {500, true}, event.NotReadable: {501, false},
	event.Overloaded: {503, true}, event.Starting: {503, true}, event.Draining: {503, true}, event.SpoolFull: {503, true},
	event.BackendFull: {503, true}, event.BackendUnavailable: {503, true}, event.AckTimeout: {503, true},
	event.PluginUnavailable: {503, true},
}
