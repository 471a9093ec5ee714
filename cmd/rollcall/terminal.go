package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/rollcall-k8s/rollcall/internal/kube"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// screen is what the terminal is opened with.
type screen struct {
	Connect   func(context.Context) (*kube.Connection, error) // may be tried again
	Namespace string                                          // that workloads are looked at in, "" for all
	Target    *report.WorkloadKey                             // whose checklist opens; nil for triage
	NodeGrace time.Duration
	Version   string
	Logger    *slog.Logger
}

// openTerminal shows the screen until the operator leaves it. While it is nil,
// reports are printed instead.
var openTerminal func(context.Context, screen) error

func (a *app) openScreen(ctx context.Context, o *triageOptions, t *target) error {
	s := screen{NodeGrace: a.nodeGrace, Version: version, Logger: a.logger}
	s.Connect = func(ctx context.Context) (*kube.Connection, error) { return a.connect(ctx) }
	if a.kube.Overrides.Context.Namespace != "" && !o.allNamespaces {
		s.Namespace = a.kube.Overrides.Context.Namespace
	}
	if t != nil {
		k := t.key(a.kube.Overrides.Context.Namespace)
		s.Target = &k
	}
	return openTerminal(ctx, s)
}
