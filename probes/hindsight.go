package probes

import (
	"slices"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// hindsight says of a verdict that its input is younger than the moment that it is
// given for: an object shows what it was last, not what it was then. Such a verdict
// is never certain.
func (c *Diagnosis) hindsight(v *report.Verdict) {
	if c.s.Newest.IsZero() {
		return
	}
	v.Missing = append(slices.Clip(v.Missing), report.Textf("what was written between %s, the moment that it is read at, and %s cannot be told from what was there before", c.s.AsOf.Format(time.RFC3339), c.s.Newest.Format(time.RFC3339)))
	if v.Confidence == report.High {
		v.Confidence = report.Medium
	}
}
