package report

// Certainty is how sure it is that somebody owns an object.
type Certainty string

// The degrees. A hint is what others leave on objects as well: no finding rests on it.
const (
	Certain Certainty = "certain"
	Likely  Certainty = "likely"
	Hint    Certainty = "hint"
)

// Reverts is when an owner puts back what was changed by hand.
type Reverts string

// The answers, the most urgent first.
const (
	RevertsAtOnce       Reverts = "AtOnce"       // it watches the object: seconds, a minute or two at most
	RevertsPeriodically Reverts = "Periodically" // with its next round
	RevertsIfTold       Reverts = "IfTold"       // a setting of the owner, which is not written on the object
	RevertsConflict     Reverts = "Conflict"     // its next apply fails on what was changed, unless it forces
	RevertsLater        Reverts = "Later"        // when somebody changes, syncs or upgrades it next
	RevertsNot          Reverts = "Not"          // it was told to leave this object alone
)

// Owner is somebody who writes an object besides whoever looks at it: a GitOps
// controller, Helm, an operator, a manager of add-ons.
type Owner struct {
	Tool Text `json:"tool"` // "Argo CD", "Flux", "Helm", "operator"
	// Object is what the tool takes its orders from, "" where nothing names it:
	// "Kustomization infra/cni", "Application network", "release kube-system/calico".
	Object Text `json:"object"`
	// Code is the finding that it amounts to, "" where there is none for its kind.
	Code      Code      `json:"code,omitempty"`
	Certainty Certainty `json:"certainty"`
	Reverts   Reverts   `json:"reverts"`
	// Manager is its name in managedFields, "" where no write of it was seen.
	Manager Text `json:"manager,omitempty"`
	// Does is what it does to a change by hand, as the rest of a sentence about it.
	Does Text `json:"does"`
	// LeavesStrategy tells that it does not apply the update strategy, as its managed
	// fields show: a freeze stays, whatever becomes of the template.
	LeavesStrategy bool `json:"leavesStrategy,omitempty"`
	// Hold are commands of which each keeps it from reverting, the better first; empty
	// where there is nothing to hold or nothing to hold it with. GiveBack undo them, each
	// the one of Hold at its place.
	Hold     []Command `json:"hold,omitempty"`
	GiveBack []Command `json:"giveBack,omitempty"`
	// Instead is where the change belongs.
	Instead []Command `json:"instead,omitempty"`
	// Beware are sentences about what these commands do besides.
	Beware   []Text     `json:"beware,omitempty"`
	Evidence []Evidence `json:"evidence"`
}

// Name is the owner in a sentence: "Flux Kustomization infra/cni".
func (o *Owner) Name() Text {
	if o.Object == "" {
		return o.Tool
	}
	return o.Tool + " " + o.Object
}

// Reconciles tells whether it puts a change by hand back of its own accord, or may.
func (o *Owner) Reconciles() bool {
	return o.Reverts == RevertsAtOnce || o.Reverts == RevertsPeriodically || o.Reverts == RevertsIfTold
}

// Lever is what comes first: what holds it, otherwise where the change belongs. ""
// where neither is known.
func (o *Owner) Lever() Text {
	if len(o.Hold) > 0 {
		return o.Hold[0].Do()
	}
	if len(o.Instead) > 0 {
		return o.Instead[0].Do()
	}
	return ""
}

// WatchOut is what an operator should know of the owner before a change by hand:
// what it will do to the change, and the lever.
func (o *Owner) WatchOut() Text {
	t := o.Name() + " " + o.Does
	switch {
	case len(o.Hold) > 0 && o.Reconciles():
		t += "; suspend it first: " + o.Hold[0].Do()
	case len(o.Instead) > 0 && o.Reverts != RevertsNot:
		t += "; what lasts: " + o.Instead[0].Do()
	}
	return t
}

// Command is a command to copy, with what it does or what to know of it. Where Run is
// "" there is none, and Says is what to do.
type Command struct {
	Says Text `json:"says,omitempty"`
	Run  Text `json:"run,omitempty"`
}

// Do is the command, or what to do where there is none.
func (c Command) Do() Text {
	if c.Run == "" {
		return c.Says
	}
	return c.Run
}

func (c Command) String() string {
	if c.Run == "" || c.Says == "" {
		return string(c.Do())
	}
	return string(c.Run) + " (" + string(c.Says) + ")"
}
