package capture

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/files"
)

// Result is what was captured, and where it is.
type Result struct {
	files.CaptureDocument
	Path string // "" where it was written to a stream
}

// suffix is that of an archive.
const suffix = ".tar.gz"

// To captures the cluster to a path: a .tar.gz file, or, where it ends in a
// separator or is a folder, a folder, which must be empty. "" names a file in the
// working folder after the context and the time. All is read and written beside its
// place before it is put there: after an error nothing is left. Files can be read by
// their owner alone. Errors are those of Folder.
func To(ctx context.Context, from Reader, target string, o Options) (Result, error) {
	asFolder, err := folder(target)
	if err != nil {
		return Result{}, err
	}
	parent := "."
	if target != "" {
		parent = filepath.Dir(filepath.Clean(target))
	}
	return beside(parent, func(work string) (Result, error) {
		doc, err := Folder(ctx, from, filepath.Join(work, objects), o)
		if err != nil {
			return Result{}, err
		}
		if asFolder {
			// An empty folder that stands there already gives way.
			if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return Result{}, writing(err)
			}
			return placed(doc, filepath.Join(work, objects), filepath.Clean(target))
		}
		if target == "" {
			target = Name(doc) + suffix
		}
		archive := filepath.Join(work, "archive")
		f, err := os.OpenFile(archive, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return Result{}, writing(err)
		}
		if err := cmp.Or(pack(ctx, f, filepath.Join(work, objects), doc), f.Sync(), f.Close()); err != nil {
			return Result{}, writing(err)
		}
		return placed(doc, archive, target)
	})
}

// Stream captures the cluster and writes the archive. Nothing is written before all
// was read.
func Stream(ctx context.Context, from Reader, w io.Writer, o Options) (Result, error) {
	return beside("", func(work string) (Result, error) {
		doc, err := Folder(ctx, from, filepath.Join(work, objects), o)
		if err != nil {
			return Result{}, err
		}
		if err := pack(ctx, w, filepath.Join(work, objects), doc); err != nil {
			return Result{}, writing(err)
		}
		return Result{CaptureDocument: doc}, nil
	})
}

// Name is what a capture is called: rollcall-CONTEXT-TIME.
func Name(doc files.CaptureDocument) string {
	context := strings.Trim(unfit.ReplaceAllString(doc.Context, "-"), "-.")
	if len(context) > maxContext {
		context = strings.Trim(context[len(context)-maxContext:], "-.") // an ARN ends with the cluster's name
	}
	return "rollcall-" + cmp.Or(context, "cluster") + "-" + doc.CapturedAt.UTC().Format("20060102T150405Z")
}

var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

const (
	maxContext = 60
	// objects is the folder within the working folder that a capture is made in.
	objects = "objects"
)

// folder tells whether a target is one, and refuses what would be overwritten.
func folder(target string) (bool, error) {
	if target == "" {
		return false, nil
	}
	asFolder := os.IsPathSeparator(target[len(target)-1])
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return asFolder, nil
	case err != nil:
		return false, fmt.Errorf("cannot capture to %s: %w", target, reason(err))
	case info.IsDir():
		entries, err := os.ReadDir(target)
		if err != nil {
			return false, fmt.Errorf("cannot capture to %s: %w", target, reason(err))
		}
		if len(entries) > 0 {
			return false, fmt.Errorf("cannot capture to %s: the folder is not empty; name one that does not exist, or a .tar.gz file", target)
		}
		return true, nil
	case asFolder:
		return false, fmt.Errorf("cannot capture to %s: there is a file of that name", target)
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("cannot capture to %s: it is no regular file; - is standard output", target)
	}
	return false, nil
}

// beside works in a folder of its own and removes it, whatever happens.
func beside(parent string, work func(dir string) (Result, error)) (r Result, err error) {
	dir, err := os.MkdirTemp(parent, ".rollcall-capture-*")
	if err != nil {
		return r, fmt.Errorf("cannot capture to the folder %s: %w; name another place with -o", cmp.Or(parent, os.TempDir()), reason(err))
	}
	defer func() {
		if e := os.RemoveAll(dir); err == nil && e != nil {
			err = writing(e)
		}
	}()
	if err := os.Mkdir(filepath.Join(dir, objects), 0o700); err != nil {
		return r, writing(err)
	}
	return work(dir)
}

// placed moves what was made to its place.
func placed(doc files.CaptureDocument, from, to string) (Result, error) {
	if err := os.Rename(from, to); err != nil {
		return Result{}, fmt.Errorf("cannot capture to %s: %w", to, reason(err))
	}
	return Result{CaptureDocument: doc, Path: to}, nil
}

// reason is an error of the operating system without the path, which stands before it.
func reason(err error) error {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	}
	return err
}

// pack writes a capture's folder as an archive: the document first, then the
// objects by name, below one folder.
func pack(ctx context.Context, w io.Writer, dir string, doc files.CaptureDocument) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	slices.SortStableFunc(entries, func(a, b os.DirEntry) int {
		return cmp.Or(rank(a.Name())-rank(b.Name()), strings.Compare(a.Name(), b.Name()))
	})
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := member(t, filepath.Join(dir, e.Name()), path.Join(Name(doc), e.Name()), doc.CapturedAt); err != nil {
			return err
		}
	}
	return cmp.Or(t.Close(), z.Close())
}

func rank(name string) int {
	if name == DocumentFile {
		return 0
	}
	return 1
}

func member(t *tar.Writer, from, name string, at time.Time) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: 0o600, ModTime: at.Truncate(time.Second), Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err = io.Copy(t, f)
	return err
}
