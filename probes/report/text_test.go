package report

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestCleanDisarmsHostileText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Text{
		"calico-node":                   "calico-node",
		"\x1b[31mred\x1b[0m":            "red",
		"a\x1b]0;title\x07b":            "ab",
		"\x1b]52;c;cm0gLXJmIC8=\x07x":   "x",
		"line one\nline two\r\n\tthree": "line one line two three",
		"back\b\b\bspace":               "backspace",
		"left\u202eright":               "leftright",
		"a\u200db\ufe0fc":               "abc",
		"bad \xff byte":                 "bad \ufffd byte",
		"C1 \u009b31m here":             "C1 31m here",
		"  kept  ":                      "  kept  ",
		"\u00a0nbsp":                    " nbsp",
		"überschrift – naïve":           "überschrift – naïve",
	} {
		if got := Clean(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	if got := Clean(strings.Repeat("x", 9000)); len(got) > maxText+len("…") {
		t.Errorf("a long text is still %d bytes", len(got))
	}
}

func FuzzCleanLeavesNothingThatMovesACursor(f *testing.F) {
	f.Add("a\x1b[2Jb")
	f.Add("\u009d8;;x\u009c")
	f.Fuzz(func(t *testing.T, s string) {
		got := string(Clean(s))
		if !utf8.ValidString(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		for _, r := range got {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
				t.Fatalf("%q still has %U", got, r)
			}
		}
		if again := string(Clean(got)); again != got && len(got) < maxText {
			t.Fatalf("not stable: %q, then %q", got, again)
		}
	})
}

func TestSeverityOfACode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		code Code
		root bool
		want Severity
	}{
		{InitContainerFailed, true, Critical}, {InitContainerFailed, false, Warning}, {NodeUnreachable, true, Critical}, {NodeCordoned, true, Info},
		{RolloutSpreading, false, Critical}, {RolloutStuck, true, Warning}, {NodeNotCovered, true, Warning}, {ControlPlaneAtRisk, false, Critical},
		{ManagedByHelm, false, Info}, {NoReadinessProbe, false, Info}, {QuotaExceeded, true, Critical}, {KubeletRestarted, true, Info},
	} {
		if got := tt.code.Severity(tt.root); got != tt.want {
			t.Errorf("%s (root cause %v) is %s, want %s", tt.code, tt.root, got, tt.want)
		}
	}
	if Code("Invented").Known() {
		t.Error("an invented code is known")
	}
}
