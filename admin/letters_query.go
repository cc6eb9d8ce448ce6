package admin

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-io/headgate/event"
	"github.com/headgate-io/headgate/internal/settings"
)

// parseLetterQuery reads what parseQuery reads, and the filters.
func parseLetterQuery(stream string, values url.Values) (q LetterQuery, limit uint64, err error) {
	q.Query = Query{Stream: stream, Partition: AllPartitions}
	for name, list := range values {
		ok := len(list) == 1 && list[0] != ""
		if ok {
			ok = parseLetterParameter(&q, name, list[0]) || parseParameter(&q.Query, &limit, name, list[0])
		}
		if !ok {
			return q, 0, event.Problemf(event.BadParameter,
				"%s=%s: give from=start|now|NUMBER, partition=N, limit=N, follow=true|false, code=WORD, plugin=NAME, reason=PART, "+
					"since=TIME|AGE, until=TIME|AGE, settled=true|false, each once", name, strings.Join(list, ","))
		}
	}
	return q, limit, nil
}

func parseLetterParameter(q *LetterQuery, name, value string) bool {
	f, err := &q.Filter, error(nil)
	switch name {
	case "code":
		f.Code = value
	case "plugin":
		f.Plugin = value
	case "reason":
		f.Reason = value
	case "since":
		f.Since, err = parseMoment(value, time.Now())
	case "until":
		f.Until, err = parseMoment(value, time.Now())
	case "settled":
		q.Settled, err = strconv.ParseBool(value)
	default:
		return false
	}
	return err == nil
}

// parseMoment reads a time (RFC 3339) or an age, as in 7d or 90m.
func parseMoment(text string, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	var age settings.Duration
	err := age.UnmarshalText([]byte(text))
	return now.Add(-time.Duration(age)), err
}
