package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// notesFiles are the files that this session wrote its notes to.
type notesFiles struct {
	mu   sync.Mutex
	ours map[string]bool
}

// write puts the notes into a file and says which. Nobody's else file is written
// over, and a disk that is full does not cost the notes that were there before.
func (n *notesFiles) write(path string, raw []byte) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	path = atHome(path)
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Mode().IsRegular() && info.Size() > 0 && !n.ours[path]:
		return path, errors.New("there is such a file already, and it is not of this session")
	case err == nil && !info.Mode().IsRegular(): // a device, a pipe, or a folder
		return path, reason(os.WriteFile(path, raw, 0o600))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return path, reason(err)
	}
	if err := replace(path, raw); err != nil {
		return path, reason(err)
	}
	if n.ours == nil {
		n.ours = map[string]bool{}
	}
	n.ours[path] = true
	return path, nil
}

// replace writes a file beside the one that is meant and puts it in its place when
// all of it is there.
func replace(path string, raw []byte) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".rollcall-notes-*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// atHome is what a shell makes of ~/: the path is typed where there is none.
func atHome(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return filepath.Join(home, rest)
}

// reason is an error without the path, which the message has already.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
