package sim

import (
	"math/rand/v2"
	"time"
)

// Program is what the image of a container does once a kubelet runs it. The zero
// value runs for ever, is ready two seconds after its start and ends at once when
// it is told to.
type Program struct {
	// Pull is how long the image takes to come to a node that does not have it.
	Pull Span
	// PullError is the runtime's answer where the image cannot be pulled.
	PullError string
	// ReadyAfter is how long after its start the readiness probe passes. A container
	// without a probe is ready when it runs.
	ReadyAfter Span
	// ProbeError is what the readiness probe says instead, for ever.
	ProbeError string
	// RunsFor is how long it runs before it ends by itself; zero runs for ever.
	RunsFor Span
	// ExitCode of a program that ends by itself.
	ExitCode int32
	// OutOfMemory means that it ends because the kernel kills it.
	OutOfMemory bool
	// StopsIn is how long it goes on after it was told to end.
	StopsIn Span
	// Effects are what it does to its node.
	Effects []Effect
	// Log is what it writes.
	Log []LogLine
}

// LogLine is a line that a program writes some time after its start. $TIME stands
// for the time that it is written at, $NODE and
// $POD for the names.
type LogLine struct {
	After time.Duration
	Text  string
}

// Span is a duration with play: each run draws its own.
type Span struct{ Min, Max time.Duration }

// Exactly is a span without play.
func Exactly(d time.Duration) Span { return Span{d, d} }

// Between is a span with play.
func Between(low, high time.Duration) Span { return Span{low, high} }

func (s Span) draw(r *rand.Rand) time.Duration { return between(r, s.Min, s.Max) }

// Moment is a point in a container's life that an Effect is counted from.
type Moment int

// The moments of a container's life.
const (
	Started Moment = iota
	BecameReady
	ToldToEnd
)

// Effect is something that a program does to its node.
type Effect struct {
	At    Moment
	After Span
	Do    func(*Host)
	Log   string // what the program writes as it happens, "" for nothing
}

// With is the program with more effects.
func (p Program) With(effects ...Effect) Program {
	p.Effects = append(append([]Effect(nil), p.Effects...), effects...)
	return p
}

// Logging is the program with more lines of log.
func (p Program) Logging(lines ...LogLine) Program {
	p.Log = append(append([]LogLine(nil), p.Log...), lines...)
	return p
}

// Healthy is a program that starts, becomes ready and stays so.
func Healthy(pull, readyAfter Span) Program {
	return Program{Pull: pull, ReadyAfter: readyAfter, StopsIn: Between(500*time.Millisecond, 1500*time.Millisecond)}
}

// Init is a program that does its work and ends well.
func Init(pull, runs Span) Program { return Program{Pull: pull, RunsFor: runs} }

// NeverReady runs, and its readiness probe fails with those words.
func NeverReady(words string) Program { return Program{ProbeError: words} }

// Fails ends by itself with an exit code: an init container that fails, or a main
// container that crashes again and again.
func Fails(after Span, code int32) Program { return Program{RunsFor: after, ExitCode: code} }

// OOM is killed by the kernel for its memory.
func OOM(after Span) Program { return Program{RunsFor: after, ExitCode: 137, OutOfMemory: true} }

// ImageMissing cannot be pulled: the registry does not know the tag.
func ImageMissing(image string) Program {
	return Program{PullError: `rpc error: code = NotFound desc = failed to pull and unpack image "` + image +
		`": failed to resolve reference "` + image + `": ` + image + `: not found`}
}

// WritesCNI makes the node's network configuration good again some time after the
// container's start: what a network agent does.
func WritesCNI(after Span, log string) Effect {
	return Effect{At: Started, After: after, Do: (*Host).WriteCNI, Log: log}
}

// BreaksCNI breaks the node's network configuration some time after the container
// became ready. The kubelet lives and says Ready=False.
func BreaksCNI(after Span, log string) Effect {
	return Effect{At: BecameReady, After: after, Do: (*Host).BreakCNI, Log: log}
}

// CutsNetwork cuts the node off some time after the container became ready: the
// kubelet reaches nobody and the node turns Unknown.
func CutsNetwork(after Span, log string) Effect {
	return Effect{At: BecameReady, After: after, Do: (*Host).CutOff, Log: log}
}

// RemovalBreaksCNI takes the network configuration away as the container ends.
func RemovalBreaksCNI(log string) Effect {
	return Effect{At: ToldToEnd, Do: (*Host).BreakCNI, Log: log}
}
