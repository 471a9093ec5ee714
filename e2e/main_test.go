// Package e2e drives the built program on a real control plane, as an operator
// would: by its commands and in a terminal.
package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/rollcall-k8s/rollcall/e2e/binaries"
)

// programs are what the tests run; set before they begin.
var programs binaries.Set

func TestMain(m *testing.M) {
	var err error
	if programs, err = binaries.Build(context.Background(), os.Stderr); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
