package action

import (
	"context"
	"errors"
	"fmt"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// definition is one kind of action. A new action is a file with one of these and
// a line in definitions.
type definition interface {
	// work reads what it needs through the API, not from the snapshot, which may
	// be some seconds old, and works the action out. It returns an error where
	// there is nothing to show, and a draft with Blocked where there is.
	work(ctx context.Context, api API, s *cluster.Snapshot, r Request) (draft, error)
	// verb is what the operator must be allowed to do with the plan's object.
	verb() string
	// holds tells whether what the plan was to bring about is so in the snapshot,
	// line by line.
	holds(p Plan, s *cluster.Snapshot) []report.Line
	// hold is for how many grace periods that must stay so.
	hold() int
	// lever is what the action moves: a later action on the same lever of the same
	// object takes the place of an earlier one.
	lever() string
}

var definitions = map[Kind]definition{
	Freeze:    freeze{},
	Unfreeze:  unfreeze{},
	RollBack:  rollBack{},
	DeletePod: deletePod{},
}

// draft is a preview before the API server was asked about it, with how to check
// what a dry run gave back.
type draft struct {
	Preview
	// mutated compares what a dry run would store with what was asked for; nil
	// where there is nothing to compare.
	mutated func(Object) report.Text
}

// Kinds lists the kinds of actions there are.
func Kinds() []Kind { return []Kind{Freeze, Unfreeze, RollBack, DeletePod} }

// Lever names what an action of this kind moves. Two actions with the same lever
// on the same object replace each other.
func Lever(k Kind) string {
	if d, ok := definitions[k]; ok {
		return d.lever()
	}
	return ""
}

// Prepare works the action out on the object as it is now and asks the API server
// whether the operator may do it and whether it would accept it. It changes
// nothing. An error says why there is nothing to preview; a preview that cannot be
// applied says why in Blocked.
func Prepare(ctx context.Context, api API, s *cluster.Snapshot, r Request) (Preview, error) {
	def, ok := definitions[r.Kind]
	if !ok {
		return Preview{}, fmt.Errorf("%q is not an action; there are %v", r.Kind, Kinds())
	}
	if err := checkNames(r); err != nil {
		return Preview{}, err
	}
	for attempt := 1; ; attempt++ {
		d, err := def.work(ctx, api, s, r)
		if err != nil {
			return Preview{}, err
		}
		if err := ask(ctx, api, def, &d); err != nil {
			// Between the read and the dry run somebody changed the object: work it
			// out anew. One that never stands still is said as such.
			if errors.Is(err, ErrConflict) && attempt < 3 {
				continue
			}
			return Preview{}, fmt.Errorf("%s: %w", d.Title, err)
		}
		return d.Preview, nil
	}
}

// ask fills in what the API server says to the plan. Only a conflict and the end
// of the context are errors; everything else is part of the preview.
func ask(ctx context.Context, api API, def definition, d *draft) error {
	if d.Blocked != "" {
		d.DryRun, d.DryRunWhy = DryRunNotSent, "there is nothing to send"
		return nil
	}
	allowed, reason, err := api.CanI(ctx, def.verb(), d.Object)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		d.PermissionWhy = report.Textf("could not be asked: %v", err)
	default:
		d.Permission, d.PermissionWhy = &allowed, report.Clean(reason)
	}
	if d.Permission != nil && !allowed {
		d.DryRun, d.DryRunWhy = DryRunNotSent, "not permitted"
		d.Blocked = report.Textf("not permitted: %s on %s %s/%s%s; ask someone who may, or use another context",
			def.verb(), d.Object.Resource, d.Object.Namespace, d.Object.Name, because(reason))
		return nil
	}
	after, err := send(ctx, api, d.Plan, true)
	switch {
	case err == nil:
		d.DryRun = DryRunAccepted
		if d.mutated != nil {
			if t := d.mutated(after); t != "" {
				d.WatchOut = append(d.WatchOut, t)
			}
		}
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, ErrConflict):
		return err
	case errors.Is(err, ErrReadOnly):
		d.DryRun, d.DryRunWhy = DryRunNotSent, "this session is read-only, and a dry run is a write to the audit log"
		d.Blocked = "this session is read-only; start it without --read-only to change the cluster"
	case errors.Is(err, ErrForbidden):
		d.DryRun, d.DryRunWhy = DryRunRefused, report.Textf("%v", err)
		d.Blocked = report.Textf("not permitted: %v", err)
	case errors.Is(err, ErrUnreachable):
		d.DryRun, d.DryRunWhy = DryRunFailed, report.Textf("%v", err)
		d.Blocked = report.Textf("the API server did not answer the dry run: %v; try again when it does", err)
	case errors.Is(err, ErrNotFound):
		d.DryRun, d.DryRunWhy = DryRunFailed, report.Textf("%v", err)
		d.Blocked = report.Textf("%s %s/%s is gone meanwhile", d.Object.Kind, d.Object.Namespace, d.Object.Name)
	default:
		d.DryRun, d.DryRunWhy = DryRunRefused, report.Textf("%v", err)
		d.Blocked = report.Textf("the API server refuses it: %v", err)
	}
	return nil
}

// send sends what the plan says. A server answers a failed `test` operation with a
// plain 422, which cannot be told from a template that does not validate; so after
// a refusal the object is read again, and one that has moved is a conflict.
func send(ctx context.Context, api API, p Plan, dryRun bool) (Object, error) {
	if p.Patch == nil {
		return Object{}, api.Delete(ctx, p.Object, p.UID, dryRun)
	}
	after, err := api.Patch(ctx, p.Object, p.PatchType, p.Patch, dryRun)
	if err == nil || known(err) || ctx.Err() != nil {
		return after, err
	}
	now, getErr := api.Get(ctx, p.Object)
	if getErr == nil && (now.UID != p.UID || now.Generation != p.Generation) {
		return after, fmt.Errorf("%w: generation %d, was %d", ErrConflict, now.Generation, p.Generation)
	}
	return after, err
}

func known(err error) bool {
	for _, e := range []error{ErrReadOnly, ErrForbidden, ErrNotFound, ErrConflict, ErrUnreachable} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
