package signs

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var night = time.Date(2026, 7, 3, 2, 15, 0, 0, time.UTC)

var atConsole = Options{Console: true, AsOf: night}

func namesOf(r Reading) []Name {
	var out []Name
	for _, f := range r.Found {
		out = append(out, f.Name)
	}
	return out
}

func TestKnownLinesAreRecognised(t *testing.T) {
	t.Parallel()
	for _, x := range told {
		r := Read([]string{x.line}, atConsole)
		if got := namesOf(r); !slices.Equal(got, x.want) {
			t.Errorf("%s\n  told %q, want %q", x.line, got, x.want)
			continue
		}
		if len(x.want) > 0 && string(r.Found[0].About) != x.about {
			t.Errorf("%s\n  about %q, want %q", x.line, r.Found[0].About, x.about)
		}
	}
}

func TestLinesThatOnlyLookAlikeAreNot(t *testing.T) {
	t.Parallel()
	for _, line := range alike {
		if got := namesOf(Read([]string{line}, atConsole)); got != nil {
			t.Errorf("%s\n  told %q", line, got)
		}
	}
}

func TestEverySignIsExplainedAndHasALine(t *testing.T) {
	t.Parallel()
	seen := map[Name]bool{}
	for _, x := range told {
		for _, n := range x.want {
			seen[n] = true
		}
	}
	names := map[Name]bool{}
	for _, s := range catalogue {
		if names[s.name] {
			t.Errorf("%s stands twice in the catalogue", s.name)
		}
		names[s.name] = true
		if !seen[s.name] {
			t.Errorf("no line of the test tells %s", s.name)
		}
		if s.state == "" || len(s.words) == 0 || len(s.match) == 0 || !strings.HasSuffix(string(s.means), ".") || s.do == "" {
			t.Errorf("%s is not complete", s.name)
		}
		for _, w := range s.words {
			if w != strings.ToLower(w) {
				t.Errorf("%s: %q can be in no line in lower case", s.name, w)
			}
		}
		if len(s.means)+len(s.do) > 400 {
			t.Errorf("%s takes %d characters to explain", s.name, len(s.means)+len(s.do))
		}
	}
	for _, s := range catalogue {
		for _, n := range s.over {
			if !names[n] {
				t.Errorf("%s explains %s, which there is not", s.name, n)
			}
		}
	}
}

func TestLogsAreNotReadAsConsoles(t *testing.T) {
	t.Parallel()
	lines := []string{"ok", "100% packet loss", "10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.5"}
	if got := namesOf(Read(lines, Options{AsOf: night})); got != nil {
		t.Errorf("told %q", got)
	}
}

func TestASignIsCountedWithItsFirstLineAndTimes(t *testing.T) {
	t.Parallel()
	r := Read([]string{
		`2026-07-03T02:10:05.1Z dial tcp 10.0.0.1:6443: connect: connection refused`,
		`2026-07-03T02:10:01.9Z Get "https://10.0.0.1:6443/livez": dial tcp 10.0.0.1:6443: connect: connection refused`,
		`2026-07-03T02:12:00Z dial tcp 127.0.0.1:9099: connect: connection refused`,
		``,
		`2026-07-03T02:13:00Z all is well`,
	}, Options{AsOf: night})
	if r.Lines != 4 || len(r.Found) != 2 {
		t.Fatalf("%d lines, found %+v", r.Lines, r.Found)
	}
	f := r.Found[0]
	if f.Count != 2 || f.About != "10.0.0.1:6443" || !strings.HasPrefix(string(f.Line), "dial") ||
		!f.First.Equal(time.Date(2026, 7, 3, 2, 10, 1, 900e6, time.UTC)) || !f.Last.Equal(time.Date(2026, 7, 3, 2, 10, 5, 100e6, time.UTC)) {
		t.Errorf("%+v from %s to %s", f, f.First, f.Last)
	}
}

func TestAFloodOfAddressesIsCountedTogether(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, ip := range strings.Fields("10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.4") {
		lines = append(lines, "dial tcp "+ip+":443: i/o timeout")
	}
	r := Read(lines, Options{})
	if len(r.Found) != 4 || r.Found[0].About != "others" || r.Found[0].Count != 3 {
		t.Errorf("found %+v", r.Found)
	}
}

func TestTheCauseStandsBeforeWhatFollowsAndGoodNewsLast(t *testing.T) {
	t.Parallel()
	r := Read([]string{"ok", "context deadline exceeded", "panic: gone", "dial tcp 10.0.0.1:1: i/o timeout", "dial tcp 10.0.0.1:1: i/o timeout", "cni plugin not initialized"}, atConsole)
	want := []Name{"CNINotInitialized", "NetworkTimeout", "Panic", "DeadlineExceeded", "APIAnswers"}
	if d := cmp.Diff(want, namesOf(r)); d != "" {
		t.Error(d)
	}
}

func TestSecretsAreHiddenBeforeALineIsCut(t *testing.T) {
	t.Parallel()
	hide := func(s string) string { return strings.ReplaceAll(s, "hunter2", "[hidden]") }
	long := strings.Repeat("x", 290) + " password=hunter2 dial tcp 10.0.0.1:6443: connect: connection refused " + strings.Repeat("y", 900)
	r := Read([]string{long, "E0703 02:10:12.1 1 a.go:1] odd hunter2"}, Options{Redact: hide, AsOf: night})
	line := string(r.Found[0].Line)
	if strings.Contains(line, "hunter2") || !strings.Contains(line, "connection refused") || utf8.RuneCountInString(line) > mostLine+10 {
		t.Errorf("line %q", line)
	}
	if len(r.Unknown) != 1 || strings.Contains(string(r.Unknown[0]), "hunter2") {
		t.Errorf("unknown %q", r.Unknown)
	}
}

func TestErrorsThatNoSignKnowsAreKeptTheLastOnes(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, n := range []string{"1", "2", "3", "4", "5"} {
		lines = append(lines, "2026-07-03 02:10:12.1 [ERROR][61] odd thing number "+n)
	}
	r := Read(append(lines, "level=info msg=fine", "error=0"), Options{})
	if len(r.Unknown) != 3 || !strings.HasSuffix(string(r.Unknown[0]), "3") || !strings.HasSuffix(string(r.Unknown[2]), "5") {
		t.Errorf("unknown %q", r.Unknown)
	}
}

func TestCommandsTellSomethingAsAWhole(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name, text string
		want       []Name
	}{
		{"no default route", "root@node-01:~# ip route\n10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.5\n10.244.3.0/26 via 10.0.0.7 dev tunl0 proto bird onlink", []Name{"NoDefaultRoute"}},
		{"a default route", "default via 10.0.0.1 dev eth0 proto dhcp src 10.0.0.5 metric 100\n10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.5", nil},
		{"no routes at all were pasted", "hello", nil},
		{"an empty CNI folder", "/etc/cni/net.d:\ntotal 0\n\n/opt/cni/bin:\ntotal 81212\n-rwxr-xr-x 1 root root 4132 Jul  3 02:10 calico", []Name{"CNIFolderEmpty"}},
		{"a full disk", "Filesystem Size Used Avail Use% Mounted on\n/dev/sda1 40G 40G 12K 100% /\n/dev/loop3 64M 64M 0 100% /snap/core/1\n/dev/sdb1 40G 10G 30G 25% /data", []Name{"DiskFull"}},
		{"an expired certificate", "notAfter=Jul  2 22:00:00 2026 GMT", []Name{"CertificateExpired"}},
		{"a certificate that is valid", "notAfter=Jul  2 22:00:00 2027 GMT", nil},
	} {
		if got := namesOf(Read(strings.Split(x.text, "\n"), atConsole)); !slices.Equal(got, x.want) {
			t.Errorf("%s: told %q, want %q", x.name, got, x.want)
		}
	}
}

func TestTimesOfLines(t *testing.T) {
	t.Parallel()
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for line, want := range map[string]time.Time{
		"2026-07-03T02:10:12Z I0101 00:00:00.0 x":          at("2026-07-03T02:10:12Z"),
		"2026-07-03T04:10:12+02:00 x":                      at("2026-07-03T02:10:12Z"),
		"2026-07-03T04:10:12+0200 x":                       at("2026-07-03T02:10:12Z"),
		"2026-07-03 02:10:12,123 ERROR x":                  at("2026-07-03T02:10:12Z"),
		"2026/07/03 02:10:12 [emerg] x":                    at("2026-07-03T02:10:12Z"),
		`1.2.3.4 - - [03/Jul/2026:04:10:12 +0200] "GET"`:   at("2026-07-03T02:10:12Z"),
		"[Fri Jul  3 02:10:12 2026] oom":                   at("2026-07-03T02:10:12Z"),
		"E0703 02:10:12.123456 1 x":                        at("2026-07-03T02:10:12Z"),
		"E1231 23:59:58.1 1 x":                             at("2025-12-31T23:59:58Z"),
		"Jul  3 02:10:12 node kubelet[1]: x":               at("2026-07-03T02:10:12Z"),
		`{"level":"error","ts":1783044612.5,"msg":"x"}`:    at("2026-07-03T02:10:12Z"),
		"[  812.123456] x":                                 {},
		"E9999 99:99:99.1 x":                               {},
		"x":                                                {},
		strings.Repeat("x", 200) + " 2026-07-03T02:10:12Z": {},
	} {
		if got := lineTime(line, night).Truncate(time.Second); !got.Equal(want) {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
	if got := lineTime("E0703 02:10:12.1 x", time.Time{}); !got.IsZero() {
		t.Errorf("a year was guessed without the time of the reading: %s", got)
	}
}

// Whatever is read, the result stays small, clean and counts what it says.
func FuzzRead(f *testing.F) {
	for _, x := range told {
		f.Add(x.line)
	}
	for _, l := range alike {
		f.Add(l)
	}
	f.Add("/etc/cni/net.d:\ntotal 0\nnotAfter=x\n\x1b[31mdial tcp 1: i/o timeout\x1b[0m\u202e")
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Split(text, "\n")
		r := Read(lines, Options{Console: true, AsOf: night, Redact: strings.ToUpper})
		if r.Lines > len(lines) || len(r.Unknown) > mostUnknown {
			t.Errorf("%d lines of %d, %d unknown", r.Lines, len(lines), len(r.Unknown))
		}
		for _, x := range r.Found {
			if x.Count < 1 || x.Count > len(lines) && x.Name != "DiskFull" && x.Name != "CertificateExpired" || x.Name == "" || x.Means == "" {
				t.Errorf("%+v", x)
			}
			if n := utf8.RuneCountInString(string(x.Line)); n > mostLine+10 || strings.ContainsAny(string(x.Line), "\x1b\n\u202e") {
				t.Errorf("a line of %d runes: %q", n, x.Line)
			}
			if (x.First == nil) != (x.Last == nil) || x.First != nil && x.Last.Before(x.First.Time) {
				t.Errorf("%+v", x)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	var lines []string
	for i := range 5000 {
		lines = append(lines, told[i%len(told)].line)
	}
	for b.Loop() {
		Read(lines, atConsole)
	}
}
