package action

import (
	"encoding/json"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// templateDiff is what changes in the template, as YAML, without the values that
// look secret.
func templateDiff(before, after *corev1.PodTemplateSpec) []report.Text {
	b, err := plain(before)
	if err != nil {
		return nil
	}
	a, err := plain(after)
	if err != nil {
		return nil
	}
	hideSecrets(b, a)
	return diffYAML(templateYAML(b), templateYAML(a))
}

func templateYAML(t plainTemplate) string {
	b, err := yaml.Marshal(t)
	if err != nil {
		return ""
	}
	// A template has no creation time; servers until 1.33 wrote a null for it.
	return strings.Replace(string(b), "  creationTimestamp: null\n", "", 1)
}

func asYAML(raw json.RawMessage, key string) string {
	b, err := yaml.JSONToYAML(mustJSON(map[string]json.RawMessage{key: raw}))
	if err != nil {
		return ""
	}
	return string(b)
}

// diffYAML gives the changed lines with three lines around them, each beginning
// with "- ", "+ " or "  ".
func diffYAML(before, after string) []report.Text {
	unified := udiff.Unified("before", "after", before, after)
	if unified == "" {
		return nil
	}
	var out []report.Text
	for _, line := range strings.Split(strings.TrimSuffix(unified, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, `\`):
		case strings.HasPrefix(line, "@@"):
			if len(out) > 0 {
				out = append(out, "  …")
			}
		default:
			out = append(out, report.Clean(line[:1]+" "+line[1:]))
		}
	}
	return out
}
