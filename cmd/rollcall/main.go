// Command rollcall is a runbook assistant for whoever is on call when a rollout
// takes nodes down. Under the name kubectl-rollcall it is a kubectl plugin.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// SIGPIPE keeps its default: a reader that has seen enough ends the program
	// quietly, as with any filter.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := newApp(os.Args[0], os.Stdin, os.Stdout, os.Stderr).run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
