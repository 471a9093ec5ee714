package kube

import "github.com/sahilm/fuzzy"

// longest is the length of a name for which it is worth looking for a near one.
const longest = 256

// nearest is the name that was probably meant, "" where none comes close. A
// fuzzy match asks for all characters in their order; so that one wrong, doubled
// or swapped character is forgiven, each is left out once.
func nearest(name string, names []string) string {
	if len(name) > longest {
		return "" // nobody mistyped that
	}
	if m := fuzzy.Find(name, names); len(m) > 0 {
		return m[0].Str
	}
	best, score := "", 0
	r := []rune(name)
	if len(r) < 3 {
		return ""
	}
	for i := range r {
		shorter := string(r[:i]) + string(r[i+1:])
		if m := fuzzy.Find(shorter, names); len(m) > 0 && (best == "" || m[0].Score > score) {
			best, score = m[0].Str, m[0].Score
		}
	}
	if best != "" {
		return best
	}
	// The name may be longer than what was meant: prod-eu-1-admin for prod-eu-1.
	for _, n := range names {
		if len(n) > len(best) && 2*len(n) >= len(name) && len(fuzzy.Find(n, []string{name})) > 0 {
			best = n
		}
	}
	return best
}
