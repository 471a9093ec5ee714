package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"
	"time"
)

// FuzzLoad holds that no input makes the reader panic or hang, and that whatever
// it kept has a name and no input is passed over in silence.
func FuzzLoad(f *testing.F) {
	for _, seed := range [][]byte{
		[]byte(nodeYAML), []byte(nodeJSON), []byte(listYAML(nodeYAML, podYAML)), []byte(prettyJSON(nodeJSON, podJSON)),
		[]byte(prettyJSON(prettyNode("a"), prettyNode("b"))), []byte("--- {a: b}\n---\n[1, 2"), []byte(`{"items":{"a":[1]},"kind":"X"}`),
		[]byte(`{"items":[{}, null, 1],"kind":7}`), []byte("items:\n- a\n-\n  - b\n"), gz([]byte(nodeJSON)), tarOf("a.json", nodeJSON),
		[]byte("a: &a [*a]\n"), []byte("{\"a\":\n---\nkind: Node\n"), []byte("==== START logs for container x\n"),
		[]byte("apiVersion: rollcall/v1\nkind: Case\nday: \"2026-07-03\"\nnow: \"10:00:00\"\n---\napiVersion: rollcall/v1\nkind: NodePool\nprefix: a\ncount: 2\ncreatedAt: \"-1h\"\n---\napiVersion: rollcall/v1\nkind: Daemon\nname: d\n"),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		s, stats, err := Load(context.Background(), []string{"-"}, Options{Stdin: bytes.NewReader(input), AsOf: time.Unix(1e9, 0)})
		if err != nil {
			if !errors.Is(err, ErrNothing) {
				t.Errorf("error %v", err)
			}
			return
		}
		for _, o := range s.Others {
			if o.Name == "" {
				t.Error("an object without a name was kept")
			}
		}
		if stats.Files == 0 {
			t.Error("something was read of no file")
		}
	})
}

// bigList writes a list of Pods that take about size bytes, all but one of each
// hundred the same few Pods again.
func bigList(w io.Writer, size int) {
	filler := bytes.Repeat([]byte("x"), 900)
	written, _ := fmt.Fprint(w, "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n")
	for i := 0; written < size; i++ {
		comma := ",\n"
		if i == 0 {
			comma = ""
		}
		n, err := fmt.Fprintf(w, `%s{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p-%d","namespace":"a","creationTimestamp":"2026-07-01T00:00:00Z","annotations":{"filler":"%s"}},"spec":{"nodeName":"n"}}`, comma, i%1000, filler)
		if err != nil {
			return
		}
		written += n
	}
	_, _ = fmt.Fprint(w, "\n]}\n")
}

// BenchmarkLoad200MB reads 200 MB that hold a thousand different Pods and reports
// the most memory in use while it does: what is kept, not what is read.
func BenchmarkLoad200MB(b *testing.B) {
	file, err := os.CreateTemp(b.TempDir(), "big-*.json")
	if err != nil {
		b.Fatal(err)
	}
	bigList(file, 200<<20)
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(file.Name())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		in := &watched{path: file.Name()}
		s, _, err := Load(context.Background(), []string{"-"}, Options{Stdin: in})
		if err != nil || len(s.Pods) != 1000 {
			b.Fatal(err)
		}
		b.ReportMetric(float64(in.most)/(1<<20), "MiB-heap")
	}
}

// watched is a file that looks at the heap while it is read.
type watched struct {
	path string
	f    *os.File
	n    int
	most uint64
}

func (w *watched) Read(p []byte) (int, error) {
	if w.f == nil {
		var err error
		if w.f, err = os.Open(w.path); err != nil {
			return 0, err
		}
	}
	if w.n++; w.n%200 == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		w.most = max(w.most, m.HeapInuse)
	}
	return w.f.Read(p)
}

// TestMemoryIsBoundedByWhatIsKept reads forty times more than it keeps.
func TestMemoryIsBoundedByWhatIsKept(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		bigList(w, 40<<20)
		_ = w.Close()
	}()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s, _, err := Load(context.Background(), []string{"-"}, Options{Stdin: r})
	if err != nil || len(s.Pods) != 1000 {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 12<<20 {
		t.Errorf("%d MiB are held for a thousand small Pods", grown>>20)
	}
	runtime.KeepAlive(s)
}
