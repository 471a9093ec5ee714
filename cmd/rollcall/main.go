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
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup asked for it to be ignored
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	// Whatever still hangs after the first signal, the second ends it.
	context.AfterFunc(ctx, stop)
	code := newApp(os.Args[0], os.Stdin, os.Stdout, os.Stderr).run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
