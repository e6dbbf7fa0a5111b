# `make test` before each commit, `make check` before a change goes in; the rest is
# a part of these, or takes longer.

GO          ?= go
# The newest that Go 1.25 can build.
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.7.0
# At least ten times what the slowest package takes.
TIMEOUT     ?= 25m
SEEDS       ?= 1000
DURATION    ?= 60s
SEED        ?=
FAULTS      ?=
TOPOLOGY    ?=

.DEFAULT_GOAL := help
.PHONY: help test check quick slow-check smoke audit setup fmt vet staticcheck cross race suites suites-raced suites-by-position unraced security mutants sim-short tidy-check sim stage-model sim-exact test-servers chaos chaos-mutants exact storm model bench bench-check otel-check webhook-check web-check test-web web-shots

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

test: ## before each commit, some minutes: format, vet, all tests that need nothing but Go, and a smoke of each promise on a real redis-server
	@scripts/setup-test.sh
	@$(MAKE) --no-print-directory fmt vet quick smoke

check: ## everything, 30 minutes on two cores: staticcheck, other systems, the race detector, real servers of three kinds, clusters, chaos, mutants, model, browser
	@scripts/setup-test.sh
	@$(MAKE) --no-print-directory slow-check staticcheck cross bench-check otel-check webhook-check tidy-check
	@$(AT_ONCE) -j 2 race unraced
	@$(MAKE) --no-print-directory suites
	@$(AT_ONCE) -j 2 mutants sim-short
	@$(AT_ONCE) -j 3 security web-check test-servers SHORT=1

# They wait for servers half of their time.
AT_ONCE = $(MAKE) --no-print-directory $(if $(filter output-sync,$(.FEATURES)),-O)

# The tests that are slow, or need a server, run for these only: see internal/test/tier.
check bench-check race suites suites-raced suites-by-position unraced security mutants sim-short sim sim-exact stage-model model test-servers chaos chaos-mutants exact storm otel-check webhook-check web-check test-web web-shots smoke: export RUNNEL_TEST = full

# What the second of these runs comes from the cache of the first.
QUICK_TIER = unset RUNNEL_TEST; $(SIM) test -json -vet off -timeout $(TIMEOUT) ./... | $(GO) run ./internal/test/slow

quick: ## go test ./...: what is pure, in fake time, or on the embedded server
	@$(QUICK_TIER)

slow-check: ## does a test of make quick take more than 5 s? It belongs to the slow tier then
	@$(QUICK_TIER) -check

# One test for each promise: one owner, order, nothing lost, retention, retries in order, true figures.
SMOKE := TestOldOwnerIsFenced|TestStoppedOwnerBeginsNothing|TestKilledOwnerIsReplacedWithinItsExpiry|TestTerminatedOwnerHandsOver|TestBrokenSends|TestTrimmingWaitsForEveryProcessor|TestOnePoisonKeyOfAHundred|TestRulesTakeHoldWithinASecond

smoke: ## a test of each promise on a real redis-server
	$(GO) test -vet off -timeout $(TIMEOUT) -run '^($(SMOKE))$$' ./internal/test/conformance
	$(GO) test -vet off -timeout $(TIMEOUT) -run '^TestEverySurfaceTellsTheTruth$$' ./internal/test/views

audit: ## licenses of all dependencies, and known vulnerabilities where their database can be reached
	@GO="$(GO)" scripts/audit.sh

setup: ## install redis-server, gcc and promtool if they are missing
	@scripts/setup-test.sh

fmt: ## is everything formatted by gofmt?
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "not formatted by gofmt:"; echo "$$files"; exit 1; fi

vet: ## go vet
	$(GO) vet ./...

staticcheck: ## staticcheck, pinned
	$(GO) run $(STATICCHECK) ./...

# Compiling all packages for two more systems would take minutes. This analyzer, which looks for calls of a function, has their types
# checked from their sources.
FINDCALL := golang.org/x/tools/go/analysis/passes/findcall/cmd/findcall@v0.40.0

cross: ## check the types of everything for darwin and windows, tests too
	$(GO) run -exec 'env GOOS=darwin CGO_ENABLED=0' $(FINDCALL) -name none ./...
	$(GO) run -exec 'env GOOS=windows CGO_ENABLED=0' $(FINDCALL) -name none ./...

# These have leases of some seconds, which lapse on a busy machine: three run at once, chaos alone.
SUITES := ./internal/test/conformance ./internal/test/cluster ./internal/test/upgrade
ALONE  := ./internal/test/chaos
# What processors promise, which holds by position as by group.
PROMISES := ./internal/test/conformance ./internal/test/cluster

# What these test runs in one goroutine or in other programs, or starts no goroutine and is
# called from several by what is raced: the race detector finds nothing there. make quick has
# run most of them, make unraced and security run the others.
OTHERS     := ./internal/store ./internal/stage ./internal/schedule ./internal/webhook ./internal/delivery ./internal/inspect ./internal/sets ./internal/schedulers ./internal/buses ./examples ./internal/cron ./internal/jobs ./internal/test/binary ./internal/test/exact ./internal/test/model ./internal/test/slow
SEQUENTIAL := internal/test/security examples/basic examples/fanout examples/outbox examples/telemetry examples/testing internal/entryid internal/keys internal/rules python internal/test/corpus internal/test/house internal/test/mutants scripts/recording
# Those that take longest come first: else the last one runs alone at the end.
LONGEST    := ./webhook . ./runneltest ./schedule ./stage ./internal/redisconn
RACED       = $$($(GO) list $(LONGEST) ./... | awk '!seen[$$0]++' | grep -v $(patsubst %,-e '/%$$',$(SEQUENTIAL) $(OTHERS:./%=%) $(SUITES:./%=%) $(ALONE:./%=%)))

# Single tests of raced packages that stay out of the race detector: see tier.Sequential.
UNRACED := TestRequestsPerThousandEvents|TestSimOverflowSeeds|TestAPageTakesLittleMemory|TestManyExecutorsSettleWithinFiveSeconds|TestManyWorkersCostLittle|TestNewAppRuns|TestWorkerOfAPackage|TestKilledProcessesReachTheFixpoint|TestStoppedProcessesChangeNothing|TestWorkersComeAndGoOverManyEntities|TestCommandsRunWithoutAnyCode|TestABackfillSurvivesKills|TestAnInterruptedApplyOfSeveralJobsIsFinished|TestAPartitionThatForgetsDuringAnOperation|TestAReceiverThatIsDownForAnHour|TestKillsBetweenRequestAndAnswer|TestStopsBetweenRequestAndAnswer|TestMemoryThatIsShort|TestStormInACluster|TestStormWhileSlotsMove|TestBatchesWhileSlotsMove|TestFailoversLoseNothingThatWasAcknowledged

# A quarter of a simulation's time is the collection of garbage. What debuggers read is a third of the time of linking: -w.
SIM := GOGC=400 $(GO)

# Most packages wait for a server half of their time, hence more at once than
# there are cores here.
race: ## all tests of what runs in several goroutines with the race detector
	RUNNEL_SIM_SEEDS=2 $(SIM) test -race -cpu 1 -parallel 4 -ldflags=-w -vet off -timeout $(TIMEOUT) -p 4 $(RACED)

suites: ## what hurts workers and servers, with the race detector: conformance, cluster, upgrade, chaos; the first two also by position
	@cd internal/test/upgrade && $(GO) build -trimpath -buildvcs=false -o /dev/null ./testdata/worker # not beside those leases
	@$(AT_ONCE) -j 2 suites-raced suites-by-position
	$(GO) test -race -ldflags=-w -vet off -timeout $(TIMEOUT) $(ALONE)

suites-raced:
	$(SIM) test -race -ldflags=-w -vet off -timeout $(TIMEOUT) -p 2 $(SUITES)

suites-by-position:
	RUNNEL_READS=position $(SIM) test -vet off -timeout $(TIMEOUT) -p 1 $(PROMISES)

unraced: ## what the race detector would find nothing in, or distort: other programs, the model, memory, requests
	$(SIM) test -vet off -timeout $(TIMEOUT) -p 2 $(OTHERS)
	$(SIM) test -vet off -timeout $(TIMEOUT) -p 3 -run '^($(UNRACED))$$' . ./cli ./web ./stage ./schedule ./webhook ./internal/test/conformance

security: ## do the documented rights suffice, does anything show a secret, is memory bounded?
	$(GO) test -vet off -timeout $(TIMEOUT) -parallel 4 ./internal/test/security

mutants: ## does a test notice each rule of the fence that is switched off?
	$(GO) test -vet off -timeout $(TIMEOUT) -parallel 6 ./internal/test/mutants

sim-short: ## 32 simulated clusters in fake time, and some with retries, with full streams, with stages
	RUNNEL_SIM_SEEDS=32 $(SIM) test -vet off -run '^TestSimSeeds$$|^TestSimRetrySeeds$$|^TestCluster$$' -timeout $(TIMEOUT) ./runneltest ./rebalance
	$(SIM) test -vet off -run '^TestSimOverflowSeeds$$|^TestSimExactly$$' -timeout $(TIMEOUT) ./runneltest
	RUNNEL_SIM_SEEDS=20 $(SIM) test -vet off -run '^TestSimStagesSeeds$$' -timeout $(TIMEOUT) ./stage

tidy-check: ## are go.mod and go.sum tidy?
	$(GO) mod tidy -diff

# SHORT=1 is what continuous integration runs.
SHORT ?=

test-servers: ## run what depends on the server on Redis 7.0, Redis 8.0 and Valkey 8.1, which are fetched: make test-servers SHORT=1
	@GO="$(GO)" scripts/test-servers.sh $(if $(SHORT),short)

sim: ## simulated clusters in fake time, also with retries, delays, full streams: make sim SEEDS=1000
	RUNNEL_SIM_SEEDS=$(SEEDS) $(SIM) test -count 1 -v -run '^TestSim.*Seeds$$' -timeout 0 ./runneltest ./stage

chaos: ## hurt real workers, links and servers, for so long in each test, and print tables: make chaos DURATION=60s SEED=7 FAULTS=kill,flush READS=position TOPOLOGY='sentinel|cluster'
	RUNNEL_CHAOS_DURATION=$(DURATION) RUNNEL_CHAOS_SEED=$(SEED) RUNNEL_CHAOS_FAULTS=$(FAULTS) RUNNEL_CHAOS_READS=$(READS) $(GO) test -count 1 -v -run '^TestFaults/^($(or $(TOPOLOGY),.*))$$' -timeout 0 ./internal/test/chaos

chaos-mutants: ## does the chaos suite's judge catch every broken build? make test tries four of them
	RUNNEL_CHAOS_MUTANTS=all $(GO) test -count 1 -v -run '^TestChaosMutants$$' -timeout 0 ./internal/test/mutants

EVENTS ?= 300000

exact: ## does each event count once while workers are killed all the time? make exact EVENTS=300000 SEED=7
	RUNNEL_EXACT_EVENTS=$(EVENTS) RUNNEL_EXACT_SEED=$(SEED) $(GO) test -count 1 -v -run '^TestKills$$' -timeout 0 ./internal/test/exact

storm: ## play storms of webhooks, with keys of both layouts: workers vanish, links break, receivers fail: make storm SEEDS=1000 SEED=7
	RUNNEL_WEBHOOK_SEEDS=$(SEEDS) RUNNEL_WEBHOOK_SEED=$(SEED) $(GO) test -count 1 -v -run '^TestStorm$$' -timeout 0 ./webhook

model: ## explore the model of the ownership protocol in large bounds: minutes, 1 GB
	RUNNEL_MODEL=large $(GO) test -count 1 -v -run '^TestProtocol$$' -timeout $(TIMEOUT) ./internal/test/model

STEPS ?= 100000

stage-model: ## compare all keys of sets with a model after each of many calls: make stage-model STEPS=100000 SEED=7
	$(GO) test -count 1 -v -run '^TestModel$$' -timeout 0 ./internal/stage -seed $(or $(SEED),0) -steps $(STEPS)

sim-exact: ## play simulated clusters twice each, exactly, and compare their histories: make sim-exact SEED=7 SEEDS=3
	$(GO) test -count 1 -v -run '^TestSimExactly$$' -timeout 0 ./runneltest -seed $(or $(SEED),1) -exact $(SEEDS)

# CASES, PAIRS and QUICK are for make bench.
CASES ?=
PAIRS ?= 15
QUICK ?=

bench: ## compare with plain go-redis and others, write docs/benchmarks: make bench CASES=drain,latency PAIRS=15, or QUICK=1
	cd bench && $(GO) run . -pairs $(PAIRS) $(if $(CASES),-cases $(CASES)) $(if $(QUICK),-quick)

bench-check: ## check the benchmarks' own module, which is not a part of the others
	@files=$$(gofmt -l bench); if [ -n "$$files" ]; then echo "not formatted by gofmt:"; echo "$$files"; exit 1; fi
	cd bench && $(GO) vet ./... && $(GO) test -timeout $(TIMEOUT) ./... && $(GO) mod tidy -diff

otel-check: ## check and test the module of the traces, which is not a part of the others
	@files=$$(gofmt -l otel); if [ -n "$$files" ]; then echo "not formatted by gofmt:"; echo "$$files"; exit 1; fi
	cd otel && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./... && $(GO) test -race -vet off -timeout $(TIMEOUT) ./... && $(GO) mod tidy -diff

webhook-check: ## check and test the module that compares webhooks with Standard Webhooks' own library
	@files=$$(gofmt -l webhook/conformance); if [ -n "$$files" ]; then echo "not formatted by gofmt:"; echo "$$files"; exit 1; fi
	cd webhook/conformance && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./... && $(GO) test -race -vet off -timeout $(TIMEOUT) ./... && $(GO) mod tidy -diff

web-check: ## check the module of the dashboard's browser tests, and run them if there is a browser
	@files=$$(gofmt -l web/browsertest); if [ -n "$$files" ]; then echo "not formatted by gofmt:"; echo "$$files"; exit 1; fi
	cd web/browsertest && $(GO) vet ./... && $(GO) mod tidy -diff && $(GO) test -timeout $(TIMEOUT)

test-web: ## test the dashboard in Chromium, which is installed if it is missing
	@scripts/setup-test.sh web
	cd web/browsertest && $(GO) test -count 1 -timeout $(TIMEOUT)

web-shots: ## take the pictures of the dashboard in docs/images, from running workers
	@scripts/setup-test.sh web
	@mkdir -p docs/images
	cd web/browsertest && RUNNEL_WEB_SHOTS=$(CURDIR)/docs/images $(GO) test -count 1 -timeout $(TIMEOUT) -run '^TestSchemes$$'
