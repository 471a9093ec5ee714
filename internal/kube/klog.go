package kube

import (
	"log/slog"

	"k8s.io/klog/v2"
)

// QuietKlog sends what client-go logs to logger instead of standard error, where
// it would tear the screen.
func QuietKlog(logger *slog.Logger) { klog.SetSlogLogger(logger) }
