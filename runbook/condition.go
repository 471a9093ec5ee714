package runbook

import (
	"fmt"
	"strconv"
	"sync"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// StepFacts are what a condition of a branch may ask of the walk besides Facts.
type StepFacts struct {
	State  report.StepState            // of the step that is left
	Codes  []report.Code               // found by its probe
	States map[string]report.StepState // of every step, by id
}

// condition is a compiled CEL condition; the zero value never holds.
type condition struct{ program cel.Program }

// environment is what conditions may use. The first group comes from the report:
//
//	kind, attribution, confidence, rootCause, rollout, strategy, mode   strings, as in the JSON report
//	codes                                                             the workload's finding codes
//	spreading, knownGood                                              booleans; knownGood: there is such a revision
//	reachable, unreachable, nodesDown, notYetReached, mayStillFall     numbers of nodes
//
// The second from the walk, empty in applies.when:
//
//	state        the state of this step: "OK", "Notice", "Anomaly", "Unknown", ...
//	found        codes that this step's probe found
//	steps        states by step id: steps["spread"] == "Anomaly"
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("kind", cel.StringType),
		cel.Variable("attribution", cel.StringType),
		cel.Variable("confidence", cel.StringType),
		cel.Variable("rootCause", cel.StringType),
		cel.Variable("rollout", cel.StringType),
		cel.Variable("strategy", cel.StringType),
		cel.Variable("mode", cel.StringType),
		cel.Variable("codes", cel.ListType(cel.StringType)),
		cel.Variable("spreading", cel.BoolType),
		cel.Variable("knownGood", cel.BoolType),
		cel.Variable("reachable", cel.IntType),
		cel.Variable("unreachable", cel.IntType),
		cel.Variable("nodesDown", cel.IntType),
		cel.Variable("notYetReached", cel.IntType),
		cel.Variable("mayStillFall", cel.IntType),
		cel.Variable("state", cel.StringType),
		cel.Variable("found", cel.ListType(cel.StringType)),
		cel.Variable("steps", cel.MapType(cel.StringType, cel.StringType)),
	)
})

// compile checks a condition: its syntax, its types, that it is a yes-or-no
// question, and that every quoted word is one that the program ever says, because
// a misspelt verdict would silently never hold.
func compile(source string, steps []string) (condition, error) {
	env, err := environment()
	if err != nil {
		return condition{}, err
	}
	ast, iss := env.Compile(source)
	if iss.Err() != nil {
		return condition{}, fmt.Errorf("%q is no valid condition: %w", source, iss.Err())
	}
	if ast.OutputType() != cel.BoolType {
		return condition{}, fmt.Errorf("%q is a %s, not a condition", source, ast.OutputType())
	}
	known := vocabulary(steps)
	var unknown string
	celast.PreOrderVisit(ast.NativeRep().Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.LiteralKind {
			return
		}
		if s, ok := e.AsLiteral().(types.String); ok && unknown == "" && !known[string(s)] && !report.Code(s).Known() {
			unknown = string(s)
		}
	}))
	if unknown != "" {
		return condition{}, fmt.Errorf("%q compares with %q, which is no verdict, code, state, kind or step", source, unknown)
	}
	p, err := env.Program(ast)
	if err != nil {
		return condition{}, fmt.Errorf("%q cannot be evaluated: %w", source, err)
	}
	return condition{program: p}, nil
}

// vocabulary are the words that conditions compare with, finding codes apart.
func vocabulary(steps []string) map[string]bool {
	v := map[string]bool{"": true, "A": true, "B": true, "C": true, "D": true,
		"RollingUpdate": true, "Recreate": true, "DaemonSet": true, "Deployment": true, "StatefulSet": true}
	for _, s := range steps {
		v[s] = true
	}
	add(v, report.RolloutBreaksNodes, report.RolloutBreaksPods, report.NodesFailIndependently, report.NodesBlockRollout,
		report.ClusterBlocksPods, report.ControllerStalled, report.CoverageGap, report.Undetermined, report.WaitingForOperator, report.Healthy)
	add(v, report.High, report.Medium, report.Low)
	add(v, report.Complete, report.Progressing, report.Slow, report.Stuck, report.Paused, report.OnDelete, report.NotObserved)
	add(v, report.StepNotYet, report.StepLooking, report.StepOK, report.StepNotice, report.StepAnomaly, report.StepSkipped, report.StepUnknown)
	return v
}

func add[T ~string](v map[string]bool, words ...T) {
	for _, w := range words {
		v[string(w)] = true
	}
}

// holds evaluates the condition. One that fails, as a look-up of a state that is
// not there does, does not hold.
func (c condition) holds(f Facts, s StepFacts) bool {
	if c.program == nil {
		return false
	}
	out, _, err := c.program.Eval(map[string]any{
		"kind":          string(f.Kind),
		"attribution":   string(f.Verdict.Attribution),
		"confidence":    string(f.Verdict.Confidence),
		"rootCause":     string(f.Verdict.RootCause),
		"rollout":       string(f.Rollout),
		"strategy":      string(f.Strategy),
		"mode":          string(f.Mode),
		"codes":         words(f.Codes),
		"spreading":     f.Spreading,
		"knownGood":     f.KnownGood != nil,
		"reachable":     f.Reachable,
		"unreachable":   f.Unreachable,
		"nodesDown":     f.NodesDown,
		"notYetReached": f.NotYetReached,
		"mayStillFall":  f.MayStillFall,
		"state":         string(s.State),
		"found":         words(s.Codes),
		"steps":         states(s.States),
	})
	return err == nil && out == types.True
}

func words(codes []report.Code) []string {
	out := make([]string, len(codes))
	for i, c := range codes {
		out[i] = string(c)
	}
	return out
}

func states(m map[string]report.StepState) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = string(v)
	}
	return out
}

func number(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}
