package kube

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/adrg/xdg"
	"sigs.k8s.io/yaml"
)

// ReadOnlyVariable makes a session read-only when it is true.
const ReadOnlyVariable = "ROLLCALL_READ_ONLY"

// Settings is the operator's configuration file.
type Settings struct {
	// ReadOnlyContexts are patterns of kubeconfig contexts whose sessions are
	// read-only, in the syntax of Go's path.Match, with * and ? matching a slash
	// too: "prod-*", "*prod*", "arn:aws:eks:*:cluster/live".
	ReadOnlyContexts []string `json:"readOnlyContexts,omitempty"`

	path string
}

// SettingsPath is where the configuration file is looked for.
func SettingsPath() string { return filepath.Join(xdg.ConfigHome, "rollcall", "config.yaml") }

// LoadSettings reads the configuration file. A file that is not there is an empty
// one; a field or pattern that is not understood is an error, since it may have
// been meant to protect a cluster.
func LoadSettings(file string) (Settings, error) {
	s := Settings{path: file}
	raw, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		return s, fmt.Errorf("cannot read the configuration %s: %w; correct its owner and mode, or remove it", file, rootCauseOfPath(err))
	}
	if err := yaml.UnmarshalStrict(raw, &s); err != nil {
		return s, fmt.Errorf("cannot use the configuration %s: %s; correct it: the one field is readOnlyContexts, a list of patterns", file, oneLine(err.Error()))
	}
	for _, p := range s.ReadOnlyContexts {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return s, fmt.Errorf("cannot use the configuration %s: readOnlyContexts: %q is not a pattern; correct it, for example \"prod-*\"", file, p)
		}
	}
	return s, nil
}

// match returns the pattern that the context matches.
func (s Settings) match(context string) (string, bool) {
	// path.Match stops at slashes, and the contexts of some clouds have them.
	flat := func(t string) string { return strings.ReplaceAll(t, "/", "\x00") }
	for _, p := range s.ReadOnlyContexts {
		if ok, err := path.Match(flat(p), flat(context)); ok && err == nil {
			return p, true
		}
	}
	return "", false
}

// readOnly tells whether a session is read-only and who said so: the flag, the
// environment or a rule for the context. None of them can lift another.
func readOnly(flag bool, env string, s Settings, context string) (bool, string, error) {
	set := false
	if env != "" {
		b, err := strconv.ParseBool(env)
		if err != nil {
			return false, "", fmt.Errorf("cannot use %s=%q: it is neither true nor false; set it to true, or unset it", ReadOnlyVariable, env)
		}
		set = b
	}
	if flag {
		return true, "--read-only", nil
	}
	if set {
		return true, ReadOnlyVariable, nil
	}
	if p, ok := s.match(context); ok && context != "" {
		return true, fmt.Sprintf("context %q matches %q in %s", context, p, s.path), nil
	}
	return false, "", nil
}

func rootCauseOfPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
