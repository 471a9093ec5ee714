package kube

import (
	"context"
	"log/slog"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// QuietKlog sends what client-go logs to logger instead of standard error, where
// it would tear the screen. It is for the start of a program: it replaces global
// handlers.
func QuietKlog(logger *slog.Logger) {
	klog.SetSlogLogger(logger)
	// The usual handlers also slow every failing goroutine down by a global clock;
	// reflectors and requests have back-offs of their own.
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(ctx context.Context, err error, msg string, keysAndValues ...any) {
			if err != nil {
				keysAndValues = append(keysAndValues, "error", string(report.Clean(err.Error())))
			}
			logger.WarnContext(ctx, msg, keysAndValues...)
		},
	}
}
