package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestTheDiagnosisFindsTheTruth draws clusters in which something happens that is
// known from the inside, looks at them at several moments, and holds what is said
// against it. ROLLCALL_TRUTH=FROM-TO (or one seed) plays other seeds, and
// ROLLCALL_TRUTH_KIND one truth only.
func TestTheDiagnosisFindsTheTruth(t *testing.T) {
	t.Parallel()
	seeds := []int64{9, 10, 322} // an innocent rollout beside a harmful one; bad Pods left after an undo; a surge called off halfway
	if s := os.Getenv("ROLLCALL_TRUTH"); s != "" {
		a, b, two := strings.Cut(s, "-")
		from, err := strconv.ParseInt(a, 10, 64)
		to := from
		if err == nil && two {
			to, err = strconv.ParseInt(b, 10, 64)
		}
		if err != nil {
			t.Fatalf("ROLLCALL_TRUTH=%s: want a seed or FROM-TO: %v", s, err)
		}
		seeds = nil
		for ; from <= to; from++ {
			seeds = append(seeds, from)
		}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, seed, truth(os.Getenv("ROLLCALL_TRUTH_KIND")))
			moments := tr.play(t)
			for _, m := range moments {
				for _, v := range views(m) {
					o := &oracle{tr: tr, m: m, r: v.diagnose(), lossy: v.lossy}
					for _, c := range o.check() {
						t.Errorf("seed %d %s (%s; %d nodes, %d dead before, kernel %q, skewed %v) at %s, %s\n  [%s] %s", seed, tr.truth, tr.how, len(tr.nodes), len(tr.before), tr.kernel, tr.skewed,
							m.at.Format(time.TimeOnly), v.name, c.kind, c.text)
					}
				}
			}
		})
	}
}
