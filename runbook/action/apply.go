package action

import (
	"context"
	"errors"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Apply carries a confirmed plan out. The object must still be the one, and have
// the generation, that the plan was worked out on (a Pod: the UID); otherwise the
// error is ErrConflict and nothing was changed: go back to the preview. The outcome
// is to be journaled whether or not there is an error.
func Apply(ctx context.Context, api API, p Plan) (Outcome, error) {
	o := Outcome{Plan: p, Before: p.Before}
	_, err := send(ctx, api, p, false)
	switch {
	case err == nil:
		o.After = p.After
	case errors.Is(err, ErrUnreachable), ctx.Err() != nil:
		// The request may have arrived although its answer did not.
		o.Err = report.Textf("no answer: %v; whether it took effect is not known", err)
	case errors.Is(err, ErrNotFound) && p.Patch == nil:
		o.Err = report.Textf("Pod %s is gone already: nothing was deleted", p.Object.Name)
	default:
		o.Err = report.Textf("%v", err)
	}
	return o, err
}
