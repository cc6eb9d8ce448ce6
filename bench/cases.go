package main

// kind is which program a case measures.
type kind int

const (
	floorKind kind = iota
	bareKind
	gatewayKind
)

// benchCase is a server, how it is set up, and how it is driven.
type benchCase struct {
	name        string
	kind        kind
	filter      bool   // it drops lines whose response is 500 to 599
	plugin      string // module, for a gateway
	connections int
	batch       int // events a request
}

// goal is what a case is compared with.
type goal struct {
	name    string
	floor   string
	ratio   float64 // CPU time per event to the floor's, at most
	minimum float64 // events per second to the floor's, at least; 0: not compared
}

// goals are the targets; a case without a filter is compared with a floor without one.
var goals = []goal{
	{name: "builtin", floor: "floor", ratio: 1.4},
	{name: "c_plugin", floor: "floor_filter", ratio: 1.7},
	{name: "go_plugin", floor: "floor_filter", ratio: 3.2},
	{name: "single", floor: "single_bare", minimum: 0.7},
}

func allCases(goPlugin, cPlugin string) []benchCase {
	return []benchCase{
		{name: "floor", kind: floorKind, connections: 8, batch: 500},
		{name: "builtin", kind: gatewayKind, connections: 8, batch: 500},
		{name: "floor_filter", kind: floorKind, filter: true, connections: 8, batch: 500},
		{name: "c_plugin", kind: gatewayKind, filter: true, plugin: cPlugin, connections: 8, batch: 500},
		{name: "go_plugin", kind: gatewayKind, filter: true, plugin: goPlugin, connections: 8, batch: 500},
		{name: "single_bare", kind: bareKind, connections: 64, batch: 1},
		{name: "single", kind: gatewayKind, connections: 64, batch: 1},
	}
}
