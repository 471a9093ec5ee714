// Command binaries builds what the e2e tests run, saying meanwhile what it does,
// and prints where it is.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/rollcall-k8s/rollcall/e2e/binaries"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	set, err := binaries.Build(ctx, os.Stderr)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	for _, path := range []string{set.Etcd, set.APIServer, set.ControllerManager, set.Scheduler, set.Rollcall} {
		_, _ = fmt.Println(path)
	}
}
