// Package gateway assembles the product: the pipeline of a batch, the streams and their plugins,
// and the order in which things start and stop.
//
// What belongs together begins with the same word:
//
//	gateway, open, stop      a gateway: what it has, how it starts, how it ends; memory is what it needs, health what it says of
//	                         itself, turn a lock that is waited for only so long
//	pipeline, passage        the way of a batch; identity, keys and trial are steps of it
//	keys                     the rates of keys, and the limits of those that are too heavy
//	window                   what is remembered of ids, answers and sessions: kept, recalled after a crash, forgotten after a loss
//	setaside                 what becomes of an event that has to go to the dead letter
//	letters                  reading, replaying and purging what is in a dead letter
//	read                     reading back what a stream has
//	streams                  which there are, and what they are: made on first use, defined, opened, deleted
//	plugins                  modules, the chain of a stream, its stages, and who is suspended
//	tables, fence            routing tables: stored, changed while events come, shown; fence has their tests under faults
//	backends, stores, spools where events go, and what is opened in the data folder
//	metrics                  collectors over all of that
//	auth, tls, quic, rates   what the listeners ask, and connections: how many there may be
package gateway
