package probes

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/rollcall-k8s/rollcall/internal/redact"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// stamp writes a moment as the screens do: the time alone, in UTC.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "at an unknown time"
	}
	return t.UTC().Format("15:04:05")
}

// dated writes a moment with its day.
func dated(t time.Time) string {
	if t.IsZero() {
		return "at an unknown time"
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// short writes a duration the way kubectl does: the two largest units.
func short(d time.Duration) string {
	if d < 0 {
		d = 0
	}
	if d > 100*365*24*time.Hour {
		return "a very long time"
	}
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Round(time.Second).Seconds()))
	case d < 10*time.Minute:
		if s := int(d.Seconds()) % 60; s != 0 {
			return fmt.Sprintf("%dm%ds", int(d.Minutes()), s)
		}
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 3*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		if m := int(d.Minutes()) % 60; m != 0 {
			return fmt.Sprintf("%dh%dm", int(d.Hours()), m)
		}
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}

// firstWords is the beginning of a message, cut at a word; what looks secret is hidden.
func firstWords(s string, n int) string {
	s = strings.Join(strings.Fields(string(report.Clean(redact.Text(s)))), " ")
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	cut := string(r[:n])
	if i := strings.LastIndexByte(cut, ' '); i > n/2 {
		cut = cut[:i]
	}
	return cut + "…"
}

// ofReplicas is the subject of a sentence about some of all replicas.
func ofReplicas(n, of int) string {
	if n == 1 {
		return fmt.Sprintf("1 of %s is", count(of, "replica"))
	}
	return fmt.Sprintf("%d of %s are", n, count(of, "replica"))
}

// shellWords are names as the arguments of a command.
func shellWords(list []string) string {
	words := make([]string, len(list))
	for i, s := range list {
		words[i] = report.Word(s)
	}
	return strings.Join(words, " ")
}

// names lists some names and counts the others.
func names(list []string, most int) string {
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// count writes "1 node", "3 nodes".
func count(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// wasWere writes "1 node was", "3 nodes were".
func wasWere(n int, word string) string {
	if n == 1 {
		return count(n, word) + " was"
	}
	return count(n, word) + " were"
}

// times writes "once", "5 times".
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func cleaned(list []string) []report.Text {
	out := make([]report.Text, 0, len(list))
	for _, s := range list {
		out = append(out, report.Clean(s))
	}
	return out
}

// amount writes a quantity of a resource as people compare it: bytes in Gi or Mi.
func amount(r corev1.ResourceName, q resource.Quantity) string {
	bytes := r == corev1.ResourceMemory || r == corev1.ResourceEphemeralStorage || strings.HasPrefix(string(r), corev1.ResourceHugePagesPrefix)
	if !bytes {
		return q.String()
	}
	const mi, gi = 1 << 20, 1 << 30
	switch v := q.Value(); {
	case v%gi == 0 && v != 0:
		return fmt.Sprintf("%dGi", v/gi)
	case v >= 10*gi || v <= -10*gi:
		return fmt.Sprintf("%.1fGi", float64(v)/gi)
	case v >= mi || v <= -mi:
		return fmt.Sprintf("%dMi", v/mi)
	default:
		return q.String()
	}
}
