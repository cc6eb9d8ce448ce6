// Package gateway assembles the product: the pipeline of a batch, the streams and their plugins,
// and the order in which things start and stop.
//
// What belongs together begins with the same word:
//
//	gateway, open, stop      a gateway: what it has, how it starts, how it ends
//	pipeline, passage        the way of a batch; identity, keyrate and trial are steps of it
//	setaside                 what becomes of an event that has to go to the dead letter
//	letters                  reading, replaying and discarding what is in a dead letter
//	streams                  which there are, and what they are: made on first use, defined, opened, deleted
//	plugins                  modules, the chain of a stream, its stages, and who is suspended
//	tables, fence           routing tables: stored, changed while events come, shown; fence has their tests under faults
//	backends, stores, spools where events go, and what is opened in the data folder
//	metrics                  collectors over all of that
//	auth, tls, quic, rates   what the listeners ask, and connections: how many there may be
package gateway
