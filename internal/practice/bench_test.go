package practice

import (
	"testing"
	"time"
)

// An incident from its making to twenty minutes after, with nobody watching.
func BenchmarkIncident(b *testing.B) {
	for b.Loop() {
		c, err := Start(DefaultIncident, 1)
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Step(Epoch.Add(20 * time.Minute)); err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}
