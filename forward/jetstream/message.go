package jetstream

import (
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/forward"
)

// Headers of a message besides those of NATS and of every run.
const (
	headerContentType     = "Content-Type"
	headerContentEncoding = "Content-Encoding" // absent when the frames are not compressed
	headerMarker          = "Headgate-Marker"  // on a message that holds no events: "seal" or "claim"
	headerClaim           = "Headgate-Claim"   // on a CLAIM marker: the life of a gateway that has taken the lane over
	headerAbove           = "Headgate-Above"   // on a marker: numbers go on behind this one, which is above its Headgate-Last-Seq
)

// Message is a stored run. Numbers are 0 and words empty where a message that is no gateway's lacks them.
type Message struct {
	Seq  uint64    // position in the stream's backend, over all lanes
	Time time.Time // when it was stored

	Stream       string
	Partition    int32
	Gateway      string
	ID           string
	First, Last  uint64 // event numbers in the lane
	Events       int
	TableVersion uint64

	ContentType, ContentEncoding string
	Payload                      []byte // frames; the reader's own

	Marker bool   // a SEAL or CLAIM marker, not a run
	Claim  string // of a CLAIM marker: which process has made it
	Above  uint64 // of a marker: numbers go on behind it, where the lane may have lost events behind Last; 0: behind Last
}

// message makes the message of a run; the payload is lent.
func message(l *lane, run *forward.Run) *nats.Msg {
	header := nats.Header{
		js.MsgIDHeader:               {run.ID},
		js.ExpectedLastSubjSeqHeader: {strconv.FormatUint(l.seq, 10)},
		headerContentType:            {run.ContentType},
		forward.HeaderStream:         {run.Stream},
		forward.HeaderPartition:      {strconv.FormatInt(int64(run.Partition), 10)},
		forward.HeaderFirst:          {strconv.FormatUint(run.First, 10)},
		forward.HeaderLast:           {strconv.FormatUint(run.Last, 10)},
		forward.HeaderCount:          {strconv.Itoa(run.Events)},
		forward.HeaderTableVersion:   {strconv.FormatUint(run.TableVersion, 10)},
	}
	if run.ContentEncoding != "" {
		header[headerContentEncoding] = []string{run.ContentEncoding}
	}
	return &nats.Msg{Subject: l.subject, Header: header, Data: run.Payload}
}

// parse reads a message; it refuses nothing, since who reads a stream must get past anything that lies there.
func parse(subject string, header nats.Header, payload []byte) Message {
	m := Message{
		ID:              header.Get(js.MsgIDHeader),
		First:           number(header, forward.HeaderFirst),
		Last:            number(header, forward.HeaderLast),
		Events:          int(number(header, forward.HeaderCount)),
		TableVersion:    number(header, forward.HeaderTableVersion),
		ContentType:     header.Get(headerContentType),
		ContentEncoding: header.Get(headerContentEncoding),
		Marker:          header.Get(headerMarker) != "",
		Claim:           header.Get(headerClaim),
		Above:           number(header, headerAbove),
		Payload:         payload,
	}
	if tokens := strings.Split(subject, "."); len(tokens) == 4 || len(tokens) == 5 {
		end := len(tokens) - 2
		partition, _ := strconv.ParseInt(tokens[end], 10, 32)
		m.Stream, m.Partition, m.Gateway = strings.Join(tokens[1:end], "."), int32(partition), tokens[end+1]
	}
	return m
}

func (m Message) at(seq uint64, stored time.Time) Message {
	m.Seq, m.Time = seq, stored
	return m
}

func number(header nats.Header, name string) uint64 {
	n, err := strconv.ParseUint(header.Get(name), 10, 63)
	if err != nil {
		return 0
	}
	return n
}
