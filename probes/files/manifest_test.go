package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

const agentYAML = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: logging}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers:
      - {name: agent, image: "registry.example/agent:v2"}
`

const settingsYAML = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: logging}\n"

func TestAManifestsWorkloadIsFoundAmongOthers(t *testing.T) {
	t.Parallel()
	list := `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}},{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"agent"},"spec":{"template":{"spec":{"containers":[{"name":"agent","image":"i:v2"}]}}}}]}`
	for name, tt := range map[string]struct {
		text string
		want Wanted
		line int
	}{
		"alone":                  {agentYAML, Wanted{}, 1},
		"by name":                {settingsYAML + "---\n" + agentYAML, Wanted{"DaemonSet", "logging", "agent"}, 5},
		"no namespace in it":     {strings.Replace(agentYAML, ", namespace: logging", "", 1), Wanted{"DaemonSet", "logging", "agent"}, 1},
		"in a List":              {list, Wanted{"DaemonSet", "", "agent"}, 1},
		"beside another one":     {strings.Replace(agentYAML, "name: agent,", "name: other,", 1) + "---\n" + agentYAML, Wanted{"DaemonSet", "", "agent"}, 12},
		"empty documents around": {"---\n---\n" + agentYAML + "---\n", Wanted{}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := ReadManifest(t.Context(), "-", strings.NewReader(tt.text), tt.want)
			if err != nil {
				t.Fatal(err)
			}
			ds, ok := m.Object.(*appsv1.DaemonSet)
			if !ok || ds.Name != "agent" || len(ds.Spec.Template.Spec.Containers) != 1 || m.Line != tt.line || len(m.Strays) > 0 {
				t.Errorf("line %d, %s, strays %q", m.Line, m.Object.GetName(), m.Strays)
			}
		})
	}
}

func TestAManifestThatCannotBeMeantIsOneLineWithItsPlace(t *testing.T) {
	t.Parallel()
	want := Wanted{"DaemonSet", "logging", "agent"}
	for name, tt := range map[string]struct {
		text string
		want Wanted
		says []string
	}{
		"bad YAML":              {agentYAML + "  oops: [\n", want, []string{"new.yaml:1", "is not valid YAML"}},
		"bad YAML further down": {settingsYAML + "---\nkind: [\n", want, []string{"new.yaml:5", "is not valid YAML"}},
		"another kind":          {settingsYAML, want, []string{"new.yaml:1", "no DaemonSet", "ConfigMap logging/settings"}},
		"another name":          {strings.Replace(agentYAML, "name: agent,", "name: agnet,", 1), want, []string{"new.yaml:1", "no DaemonSet logging/agent", "DaemonSet logging/agnet"}},
		"another namespace":     {strings.Replace(agentYAML, "namespace: logging", "namespace: default", 1), want, []string{"new.yaml:1", "DaemonSet default/agent"}},
		"twice":                 {agentYAML + "---\n" + agentYAML, want, []string{"new.yaml:12", "second time", "line 1"}},
		"several, none named":   {agentYAML + "---\n" + strings.Replace(agentYAML, "name: agent,", "name: other,", 1), Wanted{}, []string{"several workloads", "ds/NAME"}},
		"no workload":           {settingsYAML, Wanted{}, []string{"new.yaml:1", "no DaemonSet, Deployment or StatefulSet"}},
		"a number for a text":   {strings.Replace(agentYAML, `"registry.example/agent:v2"`, "7", 1), want, []string{"new.yaml:1", "not a valid DaemonSet", "image"}},
		"no kind":               {"metadata: {name: agent}\n", want, []string{"new.yaml:1", "no kind"}},
		"a text":                {"hello\n", want, []string{"new.yaml:1", "not a Kubernetes object"}},
		"nothing":               {"", want, []string{"new.yaml holds no object"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "new.yaml")
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := ReadManifest(t.Context(), file, nil, tt.want)
			if err == nil || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %v", err)
			}
			line := strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), "")
			for _, s := range tt.says {
				if !strings.Contains(line, s) {
					t.Errorf("%q does not say %q", line, s)
				}
			}
		})
	}
	if _, err := ReadManifest(t.Context(), filepath.Join(t.TempDir(), "gone.yaml"), nil, want); err == nil || !strings.Contains(err.Error(), "cannot be opened") {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestFieldsThatTheKindDoesNotHaveAreNamedByTheirPath(t *testing.T) {
	t.Parallel()
	m, err := ReadManifest(t.Context(), "-", strings.NewReader(strings.Replace(agentYAML, "      containers:", "      Tolerations: []\n      containers:", 1)+"        readynessProbe: {}\n"), Wanted{})
	if err == nil {
		t.Fatalf("a list item with a stray indentation was read: %+v", m)
	}
	text := strings.Replace(agentYAML, `image: "registry.example/agent:v2"`, `image: "registry.example/agent:v2", readynessProbe: {}`, 1)
	m, err = ReadManifest(t.Context(), "-", strings.NewReader(strings.Replace(text, "    spec:", "    spec:\n      Tolerations: []", 1)), Wanted{})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(m.Strays, "\n"); len(m.Strays) != 2 || !strings.Contains(got, "containers[0].readynessProbe") || !strings.Contains(got, "spec.template.spec.Tolerations") {
		t.Errorf("%q", m.Strays)
	}
}
