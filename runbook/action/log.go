package action

import (
	"context"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Logs reads container logs. It changes nothing, so a read-only session has it too.
type Logs interface {
	// Logs reads the end of a log once. The errors are those of an API, each one
	// clear line.
	Logs(ctx context.Context, q LogRequest) (Log, error)
}

// LogRequest asks for the end of a container's log. Init and ephemeral containers
// are named like any other.
type LogRequest struct {
	Namespace, Pod, Container string
	Previous                  bool // of the container's run before this one
	Lines                     int  // most lines; 0 is 100, at most 5,000
	Bytes                     int  // most bytes; 0 is 64 KiB, at most 1 MiB
}

// Log is the end of a container's log, safe to show, each line beginning with its
// time. Nothing is hidden in it yet: secrets are, before it is shown or kept.
type Log struct {
	Lines []report.Text
	Cut   bool // lines at the beginning were dropped to stay within Bytes
}
