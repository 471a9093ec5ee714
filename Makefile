# make test needs Go, a C compiler (for -race), and nothing else: it builds its
# own linter and its own Kubernetes, once, into .cache.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LINTER  := .cache/tools/golangci-lint

.PHONY: build test lint unit pty e2e bench practice fmt clean

build: ## the program, static and stripped, as bin/rollcall
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/rollcall ./cmd/rollcall

test: lint unit pty e2e ## everything

lint: $(LINTER) ## gofmt, vet, import rules and the rest of .golangci.yml, in every module of our own; licences
	@for module in . e2e tools; do \
		echo "lint: $$module"; \
		(cd $$module && $(CURDIR)/$(LINTER) run --config $(CURDIR)/.golangci.yml ./...) || exit 1; \
	done
	cd tools && $(GO) test ./...

$(LINTER): tools/go.mod tools/go.sum
	@echo "lint: building golangci-lint (a minute or two, the first time)"
	cd tools && $(GO) build -o ../$(LINTER) github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $(LINTER)

unit: ## unit tests under the race detector
	$(GO) test -race ./...

pty: ## the program on its practice cluster, in a pseudo-terminal
	cd e2e && $(GO) test ./terminal ./pty

e2e: ## the program on a real control plane
	cd e2e && $(GO) run ./cmd/binaries >/dev/null
	cd e2e && $(GO) test -timeout 40m -parallel 4 ./controlplane .

bench: ## the benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...

practice: ## an incident to practise on; needs no cluster
	$(GO) run ./cmd/rollcall practice

fmt: $(LINTER)
	@for module in . e2e tools; do (cd $$module && $(CURDIR)/$(LINTER) fmt --config $(CURDIR)/.golangci.yml) || exit 1; done

clean: ## what was built here; what is kept between builds stays in .cache
	rm -rf bin dist
