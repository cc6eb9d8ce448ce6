package client

import (
	"net/http"
	"testing"

	"github.com/headgate-io/headgate/sdk/session"
)

// What is refused beside events that are durable is no part of these; beside what is unknown it is no outcome.
func TestAnsweredByAProblemThatCounts(t *testing.T) {
	b := &Batch{First: 1, Count: 3}
	resp := &http.Response{StatusCode: 503, Header: http.Header{}}
	r, err := b.answered(resp, []byte(`{"code":"ack_timeout","stored":"durable","retryable":false,"accepted":1,"filtered":1,"rejected":1,"duplicates":0,
		"deadlettered":0,"errors":[{"index":2,"code":"key_rate","detail":"d","retryable":true}]}`), session.Delivered)
	if err != nil || r.Accepted != 1 || r.Filtered != 1 || r.Rejected != 1 || len(r.Rejects) != 1 || r.Rejects[0].Index != 2 || r.Level != session.Durable {
		t.Errorf("%+v %v", r, err)
	}
	var no *refusal
	_, err = b.answered(resp, []byte(`{"code":"ack_timeout","stored":"unknown","retryable":true,"rejected":1,"errors":[{"index":2,"code":"key_rate"}]}`), session.Delivered)
	if !as(err, &no) || !no.retryable {
		t.Errorf("%v", err)
	}
}
