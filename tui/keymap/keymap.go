// Package keymap is the one table of keys: what a key means, where it works, and
// how the hints, the help, the palette and the documentation call it. To change a
// key or add one, change the table; no page compares keys itself.
package keymap

import "slices"

// Command is what a key means, before the screen turns it into an intent or a movement.
type Command string

// The commands.
const (
	None Command = ""

	Up       Command = "up"
	Down     Command = "down"
	PageUp   Command = "page-up"
	PageDown Command = "page-down"
	Top      Command = "top"
	Bottom   Command = "bottom"
	Left     Command = "left"
	Right    Command = "right"
	ZoomIn   Command = "zoom-in"
	ZoomOut  Command = "zoom-out"

	Guide    Command = "guide"
	Next     Command = "next"
	Previous Command = "previous"
	Skip     Command = "skip"
	Steps    Command = "steps"
	Copy     Command = "copy"
	Texts    Command = "texts"
	Back     Command = "back"

	Freeze   Command = "freeze"
	Act      Command = "act"
	Timeline Command = "timeline"
	Evidence Command = "evidence"
	Facts    Command = "facts"
	Filter   Command = "filter"
	Find     Command = "find"
	Note     Command = "note"
	Export   Command = "export"
	Progress Command = "progress"
	Logs     Command = "logs"
	Paste    Command = "paste"
	Retry    Command = "retry"
	Help     Command = "help"
	Quit     Command = "quit"
	Redraw   Command = "redraw"

	Confirm Command = "confirm"
	Cancel  Command = "cancel"
	Accept  Command = "accept"
)

// Scope says who has the keys. Scopes are bits, so that a binding may work in several.
type Scope uint16

// The scopes. Typing is any field that takes text: there a printable key is
// text, and only the keys of this scope are commands.
const (
	OnTriage Scope = 1 << iota
	OnChecklist
	OnTimeline
	OnConnect
	InConfirm // a confirmation that one key gives
	InReader  // help, facts, progress
	InMenu
	Typing
	InTyped // a confirmation that is typed
	Pasting // many lines of text, line ends among them

	pages  = OnTriage | OnChecklist | OnTimeline
	scroll = pages | InReader | InMenu | InConfirm
)

// Binding is one row of the table.
type Binding struct {
	Command Command
	Keys    []string // as Bubble Tea names them; the first is the one that is shown
	Show    string   // how the keys are shown, where not Keys[0]
	Label   string   // one or two words, for the hint line
	Help    string   // a sentence
	Scopes  Scope
	Rank    int // place in the hint line, 0 for none; a low one is dropped last
}

// Shown is how the binding's keys are written.
func (b Binding) Shown() string {
	if b.Show != "" {
		return b.Show
	}
	return b.Keys[0]
}

// Table holds every binding, in the order in which the help lists them.
var Table = []Binding{
	{Command: Guide, Keys: []string{"enter"}, Label: "guide", Help: "open the checklist of the selected workload", Scopes: OnTriage, Rank: 1},
	{Command: Next, Keys: []string{"enter"}, Label: "next", Help: "go to the step that follows from what was found", Scopes: OnChecklist, Rank: 1},
	{Command: Previous, Keys: []string{"b", "backspace"}, Show: "b", Label: "back", Help: "go back one step; from the first one to triage", Scopes: OnChecklist, Rank: 3},
	{Command: Skip, Keys: []string{"s"}, Label: "skip", Help: "pass this step and say why", Scopes: OnChecklist, Rank: 8},
	{Command: Freeze, Keys: []string{"F"}, Label: "freeze", Help: "stop the rollout where it stands (asks first)", Scopes: pages, Rank: 2},
	{Command: Act, Keys: []string{"a"}, Label: "act", Help: "choose an action: roll back, delete one Pod, freeze (asks first)", Scopes: OnTriage | OnChecklist, Rank: 4},
	{Command: Logs, Keys: []string{"l"}, Label: "logs", Help: "read the logs of the Pod in question: all its containers, current and previous", Scopes: OnChecklist, Rank: 4},
	{Command: Paste, Keys: []string{"p"}, Label: "paste", Help: "paste what the node's console printed: it is read for known signs", Scopes: OnChecklist | InReader, Rank: 4},
	{Command: Copy, Keys: []string{"y"}, Label: "copy", Help: "copy a command of this step", Scopes: OnChecklist, Rank: 5},
	{Command: Timeline, Keys: []string{"t"}, Label: "timeline", Help: "show what happened, one lane a node", Scopes: OnTriage | OnChecklist, Rank: 6},
	{Command: Evidence, Keys: []string{"v"}, Label: "evidence", Help: "show what speaks for and against, and where it was read", Scopes: OnTriage | OnChecklist, Rank: 10},
	{Command: Facts, Keys: []string{"enter"}, Label: "facts", Help: "show the facts of this lane under the cursor, with their sources", Scopes: OnTimeline, Rank: 1},
	{Command: Left, Keys: []string{"left", "h"}, Show: "←", Label: "", Help: "move the cursor to earlier", Scopes: OnTimeline},
	{Command: Right, Keys: []string{"right", "l"}, Show: "→", Label: "", Help: "move the cursor to later", Scopes: OnTimeline},
	{Command: ZoomIn, Keys: []string{"+", "="}, Show: "+", Label: "", Help: "look closer, around the cursor", Scopes: OnTimeline},
	{Command: ZoomOut, Keys: []string{"-", "_"}, Show: "-", Label: "zoom", Help: "see more time", Scopes: OnTimeline, Rank: 5},
	{Command: Filter, Keys: []string{"f"}, Label: "filter", Help: "show only the workloads that match what you type", Scopes: OnTriage, Rank: 11},
	{Command: Filter, Keys: []string{"f"}, Label: "filter", Help: "show all nodes, or only those that fell", Scopes: OnTimeline, Rank: 3},
	{Command: Steps, Keys: []string{"tab"}, Label: "steps", Help: "show all steps and go to any of them", Scopes: OnChecklist, Rank: 9},
	{Command: Texts, Keys: []string{"e"}, Label: "hide texts", Help: "hide or show why it is asked, how to read it and the trap", Scopes: OnChecklist, Rank: 11},
	{Command: Find, Keys: []string{"/", "ctrl+p", ":"}, Show: "/", Label: "find", Help: "find anything: workloads, nodes, steps, actions, commands", Scopes: pages, Rank: 7},
	{Command: Note, Keys: []string{"n"}, Label: "note", Help: "take a note with the time", Scopes: pages, Rank: 12},
	{Command: Export, Keys: []string{"x"}, Label: "export", Help: "write the incident notes to a file", Scopes: pages, Rank: 13},
	{Command: Progress, Keys: []string{"P"}, Label: "progress", Help: "show the last action: predicted beside actual, and the proof", Scopes: pages, Rank: 14},
	{Command: Retry, Keys: []string{"r", "enter"}, Show: "r", Label: "retry", Help: "connect again now", Scopes: OnConnect, Rank: 1},
	{Command: Retry, Keys: []string{"r"}, Label: "retry", Help: "connect again now", Scopes: pages, Rank: 15},
	{Command: Help, Keys: []string{"?", "f1"}, Show: "?", Label: "keys", Help: "show every key that works here", Scopes: pages | OnConnect, Rank: 99},
	{Command: Redraw, Keys: []string{"ctrl+l"}, Label: "redraw", Help: "draw the screen anew", Scopes: pages | OnConnect},

	{Command: Confirm, Keys: []string{"y"}, Label: "do it", Help: "confirm; any other key cancels", Scopes: InConfirm, Rank: 1},
	{Command: Accept, Keys: []string{"enter"}, Label: "confirm", Help: "confirm what was typed", Scopes: InTyped, Rank: 1},
	{Command: Accept, Keys: []string{"enter"}, Label: "choose", Help: "take the selected line", Scopes: Typing | InMenu, Rank: 1},
	{Command: Accept, Keys: []string{"ctrl+d"}, Label: "read it", Help: "have what was pasted read", Scopes: Pasting, Rank: 1},
	{Command: Cancel, Keys: []string{"esc", "ctrl+c"}, Show: "esc", Label: "cancel", Help: "close this; nothing happens", Scopes: InConfirm | InTyped | Typing | InMenu | Pasting, Rank: 2},
	{Command: Cancel, Keys: []string{"esc", "enter", "q", "?", "ctrl+c"}, Show: "esc", Label: "close", Help: "close this", Scopes: InReader, Rank: 1},

	{Command: Up, Keys: []string{"up", "k"}, Show: "↑", Help: "up", Scopes: scroll},
	{Command: Down, Keys: []string{"down", "j"}, Show: "↓", Help: "down", Scopes: scroll},
	{Command: Up, Keys: []string{"up", "ctrl+k"}, Show: "↑", Help: "up", Scopes: Typing | InTyped | Pasting},
	{Command: Down, Keys: []string{"down", "ctrl+j"}, Show: "↓", Help: "down", Scopes: Typing | InTyped | Pasting},
	{Command: PageUp, Keys: []string{"pgup"}, Show: "PgUp", Help: "one page up", Scopes: scroll | Typing | InTyped | Pasting},
	{Command: PageDown, Keys: []string{"pgdown"}, Show: "PgDn", Help: "one page down", Scopes: scroll | Typing | InTyped | Pasting},
	{Command: Top, Keys: []string{"home", "g"}, Show: "Home", Help: "to the top", Scopes: scroll},
	{Command: Bottom, Keys: []string{"end", "G"}, Show: "End", Help: "to the end", Scopes: scroll},

	{Command: Back, Keys: []string{"esc"}, Label: "triage", Help: "back to triage; the checklist keeps its place", Scopes: OnChecklist, Rank: 16},
	{Command: Back, Keys: []string{"esc"}, Label: "all", Help: "clear the filter", Scopes: OnTriage},
	{Command: Back, Keys: []string{"esc", "t", "b"}, Show: "esc", Label: "back", Help: "back to where you came from", Scopes: OnTimeline, Rank: 2},
	{Command: Quit, Keys: []string{"q", "ctrl+c"}, Show: "q", Label: "quit", Help: "leave; asks first only while an action is running", Scopes: pages | OnConnect, Rank: 17},
}

// Resolve is what the key means in that scope, None where it means nothing.
func Resolve(s Scope, key string) Command {
	for _, b := range Table {
		if b.Scopes&s != 0 && slices.Contains(b.Keys, key) {
			return b.Command
		}
	}
	return None
}

// In lists the bindings of a scope in the table's order.
func In(s Scope) []Binding {
	var out []Binding
	for _, b := range Table {
		if b.Scopes&s != 0 {
			out = append(out, b)
		}
	}
	return out
}

// Hints lists the bindings of a scope that belong on the hint line, the one to be
// dropped last first.
func Hints(s Scope) []Binding {
	var out []Binding
	for _, b := range In(s) {
		if b.Rank > 0 {
			out = append(out, b)
		}
	}
	slices.SortStableFunc(out, func(a, b Binding) int { return a.Rank - b.Rank })
	return out
}

// For is the binding of a command in a scope.
func For(s Scope, c Command) (Binding, bool) {
	for _, b := range Table {
		if b.Command == c && b.Scopes&s != 0 {
			return b, true
		}
	}
	return Binding{}, false
}

// Moves tells whether a command only moves a cursor or scrolls.
func Moves(c Command) bool {
	switch c {
	case Up, Down, PageUp, PageDown, Top, Bottom:
		return true
	}
	return false
}
