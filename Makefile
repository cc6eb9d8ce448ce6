# Headgate: `make demo` runs the main job, `make test` runs the tests, `make` builds.
export CGO_ENABLED = 0
export GOFLAGS = -trimpath -buildvcs=false

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null)
LDFLAGS  = -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
GUEST    = examples/plugins/accesslog/accesslog.wasm
FUZZTIME ?= 10s

.PHONY: all build plugins demo run test test-race test-crash test-fence test-live test-faults bench-delivery test-fairness test-isolation test-hostile test-network test-quic-floods test-python test-swap fuzz bench bench-quic bench-partitioner cross cases fmt clean bench-plugins

all: build plugins

build:            ## the gateway and its command line: bin/headgate
	go build -ldflags '$(LDFLAGS)' -o bin/headgate ./cmd/headgate

plugins: $(GUEST) ## the example plugin as a WebAssembly module

$(GUEST): $(wildcard examples/plugins/accesslog/*.go sdk/plugin/*.go sdk/plugin/*.s sdk/abi/*.go) go.mod
	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags='-s -w' -o $@ ./examples/plugins/accesslog

demo: all         ## the main job in one command; DEMO=once stops by itself, DEMO_SET="http.listen=..." moves ports
	@./examples/demo/demo.sh $(DEMO)

run: build        ## only start the gateway
	./bin/headgate serve

test:             ## every test; under 5 minutes on 2 cores
	go vet ./...
	go test -timeout 30m ./...

test-race:        ## the same under the race detector (needs a C compiler); who fails is run once more, alone; a data race fails at once
	if GOBIN=$(CURDIR)/bin go install gotest.tools/gotestsum@v1.13.0; then \
	  CGO_ENABLED=1 bin/gotestsum --format pkgname --hide-summary skipped --rerun-fails=1 --rerun-fails-max-failures 3 \
	    --rerun-fails-run-root-test --rerun-fails-abort-on-data-race --packages ./... -- -race -timeout 60m; \
	else CGO_ENABLED=1 go test -race -timeout 60m ./...; fi

test-crash: all   ## kill -9 over and over under load; CRASHES=n rounds
	HEADGATE_CRASHES=$(or $(CRASHES),50) go test -count=1 -run 'KillNine|ReplayIsKilled|KilledWhileItHalves' -timeout 30m -v ./cmd/headgate

test-fence:       ## the fence protocol under the faults of gateway/testdata/fences and those drawn from SCHEDULES=n seeds; SEED=n runs one and prints it, as such a file too
	FENCE=$(or $(SCHEDULES),10000) FENCE_SEED=$(SEED) go test -count=1 -run TestFence -timeout 60m -v ./gateway

test-live:        ## a key that has 40 % of EVENTS=n events, or of more on a fast machine, is split and merged, with each ordering, with kills, stops, full disks and a backend that comes and goes; minutes
	HEADGATE_LIVE=$(or $(EVENTS),700000) go test -count=1 -run TestLive -timeout 20m -v ./cmd/headgate

test-faults:      ## every fault of docs/faults.md, and the table of what was left; CYCLES=n crashes; MINUTES=n of nothing but crashes, from SEED=n on
ifdef MINUTES
	cd faults && FAULTS_MINUTES=$(MINUTES) FAULTS_SEED=$(SEED) go test -count=1 -timeout 48h -run KillNineForMinutes
else
	rm -f bench/results/faults.jsonl
	go test -count=1 -tags failpoints ./internal/failpoint
	FAULTS=$(or $(CYCLES),full) FAULTS_SEED=$(SEED) FAULTS_LOG=$(CURDIR)/bench/results/faults.jsonl go test -count=1 -timeout 48h -v ./faults
endif

bench-delivery:   ## what durable costs, recovery, drain, beside their targets; CHECK=1 fails over a target
	DELIVERY=1 go test -count=1 -timeout 30m -v -run '^Test(A10|Recovery|Drain)' ./faults

test-fairness:    ## what a caller far over its rate does to the p99 of one within it; FAIRNESS=n seconds
	HEADGATE_FAIRNESS=$(or $(FAIRNESS),10) go test -count=1 -run B03NoisyNeighbour -v ./cmd/headgate

test-isolation:   ## what a dead backend does to the throughput of another stream
	HEADGATE_ISOLATION=1 go test -count=1 -run TestIsolation -v ./cmd/headgate

test-hostile:     ## hostile modules against the binary, beside a stream that behaves: what each cost; CHECK=1 fails over a target
	dir=$$(mktemp -d); trap 'rm -rf '$$dir EXIT; \
	HEADGATE_WRITE_HOSTILE=$$dir go test -count=1 -run WriteHostileModules ./plugins && \
	HEADGATE_HOSTILE=$$dir go test -count=1 -run "F61F62F63F64F65F66F67HostileModules|F61PausesWhileGuestsCompute" -timeout 10m -v ./cmd/headgate

test-network:     ## sessions over a network that loses, delays, repeats and damages, from changing addresses, over three kills; NETWORK=n seconds
	HEADGATE_NETWORK=$(or $(NETWORK),60) go test -count=1 -run 'BadNetworkAndKills|UnderNetem|ChromiumOverAKill' -timeout 30m -v ./cmd/headgate

test-quic-floods: ## handshakes, streams and windows that clients begin and leave, at full numbers: what they cost
	HEADGATE_HANDSHAKES=$(or $(HANDSHAKES),100000) HEADGATE_STALLED=$(or $(STALLED),20000) go test -count=1 -run 'F52|F53|F54' -timeout 90m -v ./cmd/headgate

test-python:      ## the example client in Python against the gateway, with aioquic in a folder of its own
	dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && python3 -m venv $$dir && $$dir/bin/pip install -q aioquic==1.* && \
		HEADGATE_TEST_PYTHON=$$dir/bin/python go test -count=1 -run PythonSends -v ./cmd/headgate

test-swap:        ## plugins are changed each second under 100,000 events a second for SWAP=n seconds; then UPLOADS=n versions
	HEADGATE_SWAP=$(or $(SWAP),60) go test -count=1 -run "L12SwapUnderLoad|L10SuspensionUnderLoad" -timeout 10m -v ./cmd/headgate
	HEADGATE_UPLOADS=$(or $(UPLOADS),1000) go test -count=1 -run L21AThousandVersions -timeout 30m -v ./cmd/headgate

fuzz:             ## each fuzz target for FUZZTIME
	./internal/layers/fuzz.sh $(FUZZTIME)

bench: all        ## CPU time, rate and memory beside a floor; CHECK=1 fails over a target, BENCH="..." passes flags on
	go build -o bin/bench ./bench
	./bin/bench $(if $(CHECK),-check) $(BENCH)

bench-plugins:    ## every figure of plugins beside its target; EVENTS=n for the memory of guests
	HEADGATE_TARGETS=1 go test -count=1 -v -timeout 30m -run 'TestTargets$$' ./plugins
	HEADGATE_EVENTS=$(or $(EVENTS),10000000) go test -count=1 -v -timeout 60m -run L01MemoryOfTheSDKsStaysFlat ./plugins
	go test -run '^$$' -bench 'FilterBeside|Metering' ./plugins

bench-quic: all   ## sessions and HTTP/3 beside bare quic-go, and what connections that stall hold; CHECK=1 fails over a target
	go build -o bin/bench ./bench
	./bin/bench quic $(if $(CHECK),-check) $(BENCH)

bench-partitioner: ## every figure of the partitioner beside its target; EVENTS=n a run, CHECK=1 fails over a target
	go run ./internal/simulate/table -events $(or $(EVENTS),10000000) $(if $(CHECK),-check)
	HEADGATE_PARTITIONER=1 go test -count=1 -v -timeout 30m -run 'HalfASecond|Oscillation|Stationary|UniqueKeys' ./partitioner
	go test -run '^$$' -bench 'Assign|Lookup|Sketch' ./partitioner

cross:            ## builds for all platforms
	for os in linux darwin; do for arch in amd64 arm64; do \
	  GOOS=$$os GOARCH=$$arch go build -o /dev/null ./cmd/headgate || exit 1; done; done

cases:            ## the page that says which test covers which case
	go run ./internal/cases > docs/cases.md.new && mv docs/cases.md.new docs/cases.md

fmt:
	gofmt -l -w .

clean:
	rm -rf bin headgate-data $(GUEST)
