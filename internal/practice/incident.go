package practice

import (
	"fmt"
	"strings"

	"github.com/sahilm/fuzzy"

	"github.com/rollcall-k8s/rollcall/internal/practice/sim"
)

// Incident is one that can be practised.
type Incident struct {
	Name  string // as on the command line
	Title string
	// Teaches is what one has learnt when it is solved.
	Teaches string
	// Verdict is the attribution that a right diagnosis ends with, Culprit the
	// workload that it names, "" where any will do.
	Verdict, Culprit string

	programs map[string]sim.Program // by image, beyond those of the base cluster
	build    func(*stage) error
}

// DefaultIncident is played when none is named.
const DefaultIncident = "cni-cascade"

// Incidents lists what can be practised, the first one first.
func Incidents() []Incident {
	return []Incident{cniCascade(), cniCascadeUnknown(), imageMissing(), configBroken(), deadNodesBlock()}
}

func find(name string) (Incident, error) {
	var names []string
	for _, i := range Incidents() {
		if i.Name == name {
			return i, nil
		}
		names = append(names, i.Name)
	}
	hint := ""
	if meant := nearest(name, names); meant != "" {
		hint = fmt.Sprintf("did you mean %s? ", meant)
	}
	return Incident{}, fmt.Errorf("no practice incident is called %q: %sthere are %s", name, hint, strings.Join(names, ", "))
}

// nearest is the name that a misspelt one was meant to be, "" if none is close: its
// letters stand in the name in that order, all of them or all but one.
func nearest(name string, names []string) string {
	if found := fuzzy.Find(name, names); len(found) > 0 {
		return found[0].Str
	}
	best, score := "", 0
	letters := []rune(name)
	for i := range letters {
		if len(letters) < 4 {
			break
		}
		shorter := string(letters[:i]) + string(letters[i+1:])
		if found := fuzzy.Find(shorter, names); len(found) > 0 && (best == "" || found[0].Score > score) {
			best, score = found[0].Str, found[0].Score
		}
	}
	return best
}
