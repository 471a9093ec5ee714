// Package licences checks what the program is compiled from.
package licences

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/licensecheck"
)

// permissive are the licences that leave the program free to be used, changed and
// passed on with no more than a notice.
var permissive = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "0BSD", "Unlicense", "Zlib"}

type module struct {
	Path, Dir string
	Main      bool
}

func TestEveryModuleOfTheProgramIsPermissive(t *testing.T) {
	t.Parallel()
	for _, m := range modulesOf(t, "./...") {
		if why := objection(m.Dir, permissive); why != "" {
			t.Errorf("%s: %s", m.Path, why)
		}
	}
}

// What only tests use is not passed on with the program: there a licence will do
// that asks for changes to its own files.
func TestEveryModuleOfTheTestsIsPermissiveOrLimitedToItsFiles(t *testing.T) {
	t.Parallel()
	for _, m := range modulesOf(t, "-test", "./...") {
		if why := objection(m.Dir, append([]string{"MPL-2.0"}, permissive...)); why != "" {
			t.Errorf("%s: %s", m.Path, why)
		}
	}
}

// modulesOf are the modules from which packages are compiled in, ours aside.
func modulesOf(t *testing.T, packages ...string) map[string]module {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-deps", "-json=Module"}, packages...)...)
	cmd.Dir, cmd.Stderr = "../..", os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := map[string]module{}
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct{ Module *module }
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Module != nil && !p.Module.Main {
			modules[p.Module.Path] = *p.Module
		}
	}
	if len(modules) < 10 {
		t.Fatalf("go list names %d modules: that cannot be all", len(modules))
	}
	return modules
}

// objection says why the licence files of a module's folder do not hold allowed
// licences alone, or "".
func objection(dir string, allowed []string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err.Error()
	}
	found := false
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if e.IsDir() || !slices.ContainsFunc([]string{"LICENSE", "LICENCE", "COPYING", "UNLICENSE"}, func(s string) bool { return strings.HasPrefix(name, s) }) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err.Error()
		}
		// Below this share of known words, something else stands in the file.
		const enough = 75
		coverage := licensecheck.Scan(text)
		if coverage.Percent < enough {
			return e.Name() + " is no licence that is known"
		}
		for _, m := range coverage.Match {
			if !slices.Contains(allowed, m.ID) && !m.IsURL {
				return e.Name() + " holds " + m.ID
			}
		}
		found = true
	}
	if !found {
		return "no licence file"
	}
	return ""
}

func TestObjections(t *testing.T) {
	t.Parallel()
	dir := func(files map[string]string) string {
		d := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(d, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return d
	}
	const isc = `Copyright 2020 Somebody
Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, provided that the above copyright notice and this permission notice appear in all copies.
THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.`
	const gpl = `This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.

This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without even the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE. See the GNU General Public License for more details.

You should have received a copy of the GNU General Public License along with this program. If not, see <https://www.gnu.org/licenses/>.`
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"permissive":      {map[string]string{"LICENSE": isc}, ""},
		"copyleft":        {map[string]string{"COPYING": gpl}, "holds GPL"},
		"one of each":     {map[string]string{"LICENSE": isc, "LICENSE.other": gpl}, "holds GPL"},
		"nothing at all":  {map[string]string{"README.md": isc}, "no licence file"},
		"something vague": {map[string]string{"LICENSE": "You may use this as long as you are nice."}, "is no licence that is known"},
	} {
		if got := objection(dir(c.files), permissive); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
