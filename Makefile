# Two commands do everything on a fresh machine with Go, Node and make:
#   make run    starts Parley with its embedded defaults
#   make test   installs what the tests need, and runs them

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.13.2
GOVULNCHECK   := golang.org/x/vuln/cmd/govulncheck@v1.3.0

.PHONY: run build test check promises bench fuzz test-deps speech test-speech

# Tools and webhooks may reach this machine, so that a newcomer can try them; in every
# other start they may not.
run: export PARLEY_ALLOW_PRIVATE ?= 127.0.0.0/8,::1/128
run: build
	./bin/parley serve

# One static binary, without cgo.
build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/parley ./cmd/parley

# Parley that hears and speaks English by itself. It needs npm and a C compiler; docs/speech.md says what is installed.
speech:
	./internal/provider/local/install.sh build/speech
	CGO_ENABLED=1 $(GO) build -tags speech -trimpath -ldflags '$(LDFLAGS)' -o bin/parley-speech ./cmd/parley

test-speech: speech
	CGO_ENABLED=1 $(GO) test -tags speech -race -shuffle=on -timeout 20m -v ./internal/provider/local

# The race detector runs over everything; it needs cgo and a C compiler.
test: test-deps
	CGO_ENABLED=1 $(GO) test -race -shuffle=on -timeout 20m ./...

test-deps:
	./e2e/install-peers.sh

# What a change must pass before it is proposed.
check: test
	$(GO) vet ./...
	$(GO) run $(GOLANGCI_LINT) run
	$(GO) mod verify
	$(GO) run $(GOVULNCHECK) ./...

# The promises at their full figures, and the flake hunt.
promises: test-deps
	PARLEY_PROMISES=full CGO_ENABLED=1 $(GO) test -race -shuffle=on -timeout 60m -run 'TestPromise' ./...
	CGO_ENABLED=1 $(GO) test -race -shuffle=on -count=50 -timeout 60m ./internal/converse

bench: build
	$(GO) test -run '^$$' -bench . -benchmem ./...
	./bin/parley bench api

# Every fuzz target for a minute each.
fuzz:
	@for package in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz'); do \
	    echo "$$package $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime 60s $$package || exit 1; \
	  done; \
	done
