package action

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestDiffHidesSecretsAndStillShowsThatTheyDiffer(t *testing.T) {
	t.Parallel()
	make := func(password, mode string) *corev1.PodTemplateSpec {
		t := template("agent:v1")
		c := &t.Spec.Containers[0]
		c.Env = []corev1.EnvVar{{Name: "DB_PASSWORD", Value: password}, {Name: "MODE", Value: mode}, {Name: "URL", Value: "https://bob:" + password + "@db/x"}}
		c.Args = []string{"--api-token=" + password, "--password", password, "--mode=" + mode}
		t.Annotations = map[string]string{"vendor/secret": password}
		return &t
	}
	out := fmt.Sprint(templateDiff(make("hunter2", "ipip"), make("correct-horse", "vxlan")))
	for _, s := range []string{"hunter2", "correct-horse"} {
		if strings.Contains(out, s) {
			t.Errorf("shows %q:\n%s", s, out)
		}
	}
	for _, s := range []string{"ipip", "vxlan", "-     - --api-token=(hidden)", "+     - --api-token=(hidden, another value)", "bob:(hidden, another value)@db"} {
		if !strings.Contains(out, s) {
			t.Errorf("does not show %q:\n%s", s, strings.ReplaceAll(out, " - ", "\n- "))
		}
	}
	if same := templateDiff(make("hunter2", "ipip"), make("hunter2", "ipip")); len(same) != 0 {
		t.Errorf("equal templates differ: %q", same)
	}
}

// A secret is hidden wherever a template may hold one, not only in variables.
func TestNoPartOfATemplateShowsASecret(t *testing.T) {
	t.Parallel()
	make := func(s string) *corev1.PodTemplateSpec {
		t := template("agent:v1")
		t.Annotations = map[string]string{"last": `{"env":[{"name":"DB_PASSWORD","value":"` + s + `"}]}`}
		c := &t.Spec.Containers[0]
		c.Args = []string{"-c", "curl -H 'Authorization: Bearer " + s + "abcdef' x"}
		c.Env = []corev1.EnvVar{
			{Name: "PEM", Value: "-----BEGIN RSA PRIVATE KEY-----\n" + s + "\n-----END RSA PRIVATE KEY-----"},
			{Name: "DATABASE", Value: "Server=x;Password=" + s + ";"},
			{Name: "JWT", Value: "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + s},
		}
		c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			HTTPHeaders: []corev1.HTTPHeader{{Name: "Authorization", Value: "Basic " + s}}}}}
		c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"out", "--password", s}}}}
		t.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "kept-" + s[:4]}}}}
		return &t
	}
	out := fmt.Sprint(templateDiff(make("hunter2"), make("correcthorse")))
	for _, s := range []string{"hunter2", "correcthorse"} {
		if strings.Contains(out, s) {
			t.Errorf("shows %q:\n%s", s, strings.ReplaceAll(out, " - ", "\n- "))
		}
	}
	for _, s := range []string{"secretName: kept-hunt", "secretName: kept-corr", "(hidden, another value)"} {
		if !strings.Contains(out, s) {
			t.Errorf("does not show %q:\n%s", s, strings.ReplaceAll(out, " - ", "\n- "))
		}
	}
}

func TestDiffLinesBeginWithTheirMark(t *testing.T) {
	t.Parallel()
	a, b := template("agent:v1"), template("agent:v2\x1b[31m")
	lines := templateDiff(&a, &b)
	marks := map[string]int{}
	for _, l := range lines {
		marks[string(l[:2])]++
		if strings.ContainsRune(string(l), '\x1b') {
			t.Errorf("an escape sequence got through: %q", l)
		}
	}
	if marks["- "] != 1 || marks["+ "] != 1 || marks["  "] == 0 || len(marks) != 3 {
		t.Errorf("marks %v in %q", marks, lines)
	}
}
