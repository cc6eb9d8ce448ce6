// Package ingest turns requests on sockets into batches of events: limits, content codings, framing, syntax, and
// the answer that says what became of every event.
//
// The core knows requests, whatever they come over:
//
//	stream                       what ingest asks of the gateway: Gate, Stream, Settings
//	core, request                a request from its header to its answer
//	examine, plan, query, media  what the header says is to be done; auth, rates, owner, identity, ordering and cloudevent
//	                             are parts of it
//	buffer, account, work        the memory of a request, and who pays for it
//	coding, inflate, inflater    content codings undone; snappy is one of them
//	decode                       the body cut into events and checked
//	once                         the answer to a repetition under an Idempotency-Key
//	deadline, stack              how long Accept may take, and how deep a goroutine is
//	outcome, trial               the answer: its document and its counts
//	date                         the field Date of the answer
//	metrics                      what is counted
//
// HTTP/1.1:
//
//	server                       all listeners: how they start and stop
//	listener, roster             accepting, and how many connections there may be
//	socket, conn                 a connection: deadlines, TLS, its end
//	edge, head, handover, body   between fasthttp and the core
//	express                      small plain requests past fasthttp
//	cors                         what browsers ask
//
// QUIC, whose socket is package quicdoor's:
//
//	quic                         which protocols are spoken there
//	h3                           HTTP/3
//	session                      headgate/1: a connection, its sessions, the frames and the datagrams of one
//	sessions                     the state of each session, also of those that have gone
//	webtransport                 a session within HTTP/3
//
// A session on a stream is an attachment; when it goes on on another stream, that is another attachment with the same
// sessionState. An EVENTS frame is an arrival until its events are in the lanes, and then a flight until its outcome is said.
// At accepted, flights next to each other that are not all durable yet are a stretch.
package ingest
