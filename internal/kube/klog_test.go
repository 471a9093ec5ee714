package kube

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// It is not parallel: it replaces global handlers.
func TestQuietKlogLogsWhatClientGoSays(t *testing.T) {
	var out strings.Builder
	QuietKlog(slog.New(slog.NewTextHandler(&out, nil)))
	t.Cleanup(func() { QuietKlog(slog.New(slog.DiscardHandler)) })
	klog.InfoS("an information", "kind", "Node")
	utilruntime.HandleErrorWithContext(context.Background(), errors.New("bad\x1b[31m"), "a failure", "reflector", "r")
	for _, want := range []string{"an information", "kind=Node", "a failure", "error=bad", "reflector=r"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %q", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("an escape sequence reached the log")
	}
}
