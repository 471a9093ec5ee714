package probes

import (
	"slices"
	"strings"
	"unicode"

	"github.com/sahilm/fuzzy"
	corev1 "k8s.io/api/core/v1"
)

// labelSet is every label that nodes have: key, value, and on how many nodes.
type labelSet map[string]map[string]int

// manyValues is from how many values on a key tells nodes apart instead of grouping
// them, as the hostname does: no value of it was meant by anybody.
const manyValues = 200

// nodeLabels are the labels of all nodes, gathered once.
func (c *Diagnosis) nodeLabels() labelSet {
	c.labelsOnce.Do(func() {
		c.labels = labelSet{}
		for _, n := range c.s.Nodes {
			for k, v := range n.Labels {
				values := c.labels[k]
				if values == nil {
					values = map[string]int{}
					c.labels[k] = values
				}
				values[v]++
			}
		}
	})
	return c.labels
}

// nearLabel is a label that nodes have and that may have been meant.
type nearLabel struct {
	key, value string
	nodes      int
	// slip tells that it is a slip away: a letter, the case, an older name of the key.
	// Otherwise it is merely the most alike.
	slip bool
}

func (l nearLabel) String() string {
	if l.value == "" {
		return l.key
	}
	return l.key + "=" + l.value
}

// renamed are labels that Kubernetes gave other keys; an old one may be gone.
var renamed = map[string]string{
	"beta.kubernetes.io/os":                    corev1.LabelOSStable,
	"beta.kubernetes.io/arch":                  corev1.LabelArchStable,
	"beta.kubernetes.io/instance-type":         corev1.LabelInstanceTypeStable,
	"failure-domain.beta.kubernetes.io/zone":   corev1.LabelTopologyZone,
	"failure-domain.beta.kubernetes.io/region": corev1.LabelTopologyRegion,
	"node-role.kubernetes.io/master":           "node-role.kubernetes.io/control-plane",
}

// enumerated are keys with values that are alike and mean different things.
func enumerated(key string) bool {
	switch key {
	case corev1.LabelOSStable, corev1.LabelArchStable, corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelInstanceTypeStable:
		return true
	}
	_, old := renamed[key]
	return old || strings.Contains(key, "version") || strings.Contains(key, "zone") || strings.Contains(key, "instance")
}

// nearest is the label that was probably meant by key and one of values (none: any
// value will do), where no node has it as it is written. A slip comes before what is
// merely alike, and what more nodes have before what fewer have.
func (s labelSet) nearest(key string, values []string) (nearLabel, bool) {
	if len(values) == 0 && len(s[key]) > 0 || slices.ContainsFunc(values, func(v string) bool { return s[key][v] > 0 }) {
		return nearLabel{}, false
	}
	var best nearLabel
	list := s.near(key, values)
	for i, l := range list {
		if i == 0 || l.slip && !best.slip || l.slip == best.slip && (l.nodes > best.nodes || l.nodes == best.nodes && l.String() < best.String()) {
			best = l
		}
	}
	return best, len(list) > 0
}

// near are all labels that resemble what is asked for, or are merely alike, in any order.
func (s labelSet) near(key string, values []string) []nearLabel {
	var out []nearLabel
	wanted := func(v string) bool { return len(values) == 0 || slices.Contains(values, v) }
	for k, have := range s {
		slipKey := k != key && (resembleKeys(key, k) || renamed[key] == k)
		if len(have) > manyValues || k != key && !slipKey {
			continue
		}
		for v, n := range have {
			switch {
			case slipKey && wanted(v):
				out = append(out, nearLabel{k, v, n, true})
			case slipKey || enumerated(k) || wanted(v):
			case slices.ContainsFunc(values, func(w string) bool { return resembles(w, v) || bothYes(w, v) }):
				out = append(out, nearLabel{k, v, n, true})
			case slices.ContainsFunc(values, func(w string) bool { return alike(w, v) }):
				out = append(out, nearLabel{k, v, n, false})
			}
		}
	}
	return out
}

// bothYes tells of two ways to say yes: labels of roles have no value at all.
func bothYes(a, b string) bool {
	yes := func(s string) bool {
		return s == "" || strings.EqualFold(s, "true") || strings.EqualFold(s, "yes") || s == "1"
	}
	return yes(a) && yes(b)
}

// resembleKeys tells whether key b may have been meant by a: the prefix or the name
// is a slip away, the other the same.
func resembleKeys(a, b string) bool {
	pa, na := splitKey(a)
	pb, nb := splitKey(b)
	switch {
	case pa == pb:
		return resembles(na, nb)
	case na == nb:
		return pa != "" && pb != "" && resembles(pa, pb)
	}
	return false
}

func splitKey(k string) (prefix, name string) {
	if i := strings.IndexByte(k, '/'); i >= 0 {
		return k[:i], k[i+1:]
	}
	return "", k
}

// resembles tells whether b is a slip away from a: another case, another separator,
// or one letter missing, added, wrong or swapped with its neighbour (two in long
// words). A number that differs is another thing, and so is a word of a few letters:
// pool-a and pool-b, v1 and v2, arm64 and amd64 are no typing errors.
func resembles(a, b string) bool {
	if a == b || a == "" || b == "" {
		return false
	}
	a, b = strings.ToLower(a), strings.ToLower(b)
	if a == b {
		return true
	}
	if !slices.Equal(digits(a), digits(b)) {
		return false
	}
	x, y := words(a), words(b)
	if strings.Join(x, "") == strings.Join(y, "") {
		return true
	}
	if len(x) != len(y) {
		return slip(strings.Join(x, ""), strings.Join(y, ""))
	}
	for i := range x {
		if x[i] != y[i] && !slip(x[i], y[i]) {
			return false
		}
	}
	return true
}

func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func digits(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsDigit(r) })
}

func slip(a, b string) bool {
	n := max(len(a), len(b))
	switch editDistance(a, b) {
	case 1:
		return n >= 5 || n == 4 && len(a) != len(b)
	case 2:
		return n >= 9
	}
	return false
}

// alike is the weaker question, for a hint only: the letters of one stand in the
// other in their order, and most of it is the same.
func alike(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if len(a) < 3 || len(b) < 3 || a == b {
		return false
	}
	if len(fuzzy.Find(a, []string{b})) == 0 && len(fuzzy.Find(b, []string{a})) == 0 {
		return false
	}
	return 2*editDistance(a, b) <= max(len(a), len(b))
}

// NearestName is the name of the list that was probably meant by one that is not in
// it, or "": for messages about a node or a workload that does not exist.
func NearestName(typed string, list []string) string {
	best, at := "", 0
	for _, n := range list {
		d := editDistance(strings.ToLower(typed), strings.ToLower(n))
		if near := d <= 2 && 3*d <= len(typed); near && (best == "" || d < at || d == at && n < best) {
			best, at = n, d
		}
	}
	if best != "" || typed == "" {
		return best
	}
	for _, m := range fuzzy.Find(typed, list) {
		if alike(typed, m.Str) {
			return m.Str
		}
	}
	return ""
}

// editDistance is the number of letters added, left out, wrong or swapped with their
// neighbour between two words (optimal string alignment).
func editDistance(a, b string) int {
	if a == b {
		return 0
	}
	if d := len(a) - len(b); d > 2*len(b)+2 || -d > 2*len(a)+2 {
		return max(len(a), len(b))
	}
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
