package kube

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestReadOnlyRules(t *testing.T) {
	t.Parallel()
	s, err := LoadSettings(file(t, "readOnlyContexts: [prod-*, '*:cluster/live', exact]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		flag         bool
		env, context string
		want         bool
		why          string
	}{
		{false, "", "staging", false, ""},
		{true, "", "staging", true, "--read-only"},
		{false, "true", "staging", true, ReadOnlyVariable},
		{false, "1", "staging", true, ReadOnlyVariable},
		{false, "false", "staging", false, ""},
		{false, "", "prod-eu-1", true, `"prod-*"`},
		{false, "", "prod-eu/1", true, `"prod-*"`},
		{false, "0", "prod-eu-1", true, `"prod-*"`}, // no rule lifts another
		{false, "", "arn:aws:eks:eu-west-1:1:cluster/live", true, "cluster/live"},
		{false, "", "nonprod-1", false, ""},
		{false, "", "exactly", false, ""},
		{false, "", "", false, ""},
	} {
		got, why, err := readOnly(c.flag, c.env, s, c.context)
		if err != nil || got != c.want || !strings.Contains(why, c.why) {
			t.Errorf("flag %v, env %q, context %q: %v because of %q (%v), want %v because of %q", c.flag, c.env, c.context, got, why, err, c.want, c.why)
		}
	}
	if _, _, err := readOnly(false, "maybe", s, ""); err == nil || !strings.Contains(err.Error(), ReadOnlyVariable) {
		t.Errorf("a variable that is neither true nor false: %v", err)
	}
}

func TestSettingsThatAreNotUnderstoodAreRefused(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"readonlycontexts: [prod]\nreadOnly: yes": "unknown field",
		"readOnlyContexts: ['prod-[']":            `"prod-["`,
		"readOnlyContexts: ['']":                  "is not a pattern",
		"readOnlyContexts: {a: b}":                "readOnlyContexts",
		"a:\n\tb":                                 "config",
	} {
		p := file(t, content)
		_, err := LoadSettings(p)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), p) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", content, err)
		}
	}
	if s, err := LoadSettings(filepath.Join(t.TempDir(), "none")); err != nil || len(s.ReadOnlyContexts) > 0 {
		t.Errorf("a missing file: %v %v", s, err)
	}
	if _, err := LoadSettings(t.TempDir()); err == nil {
		t.Error("a directory passed")
	}
}
