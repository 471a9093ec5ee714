// Package binaries builds what the tests run: the control plane of Kubernetes,
// etcd, and the program itself. The control plane is compiled from the pinned
// modules under e2e/tools, once for each version, into a cache folder that git
// ignores.
package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// CacheEnv names the variable that moves the cache folder, for machines that
// keep one between clones. Without it the cache is .cache/e2e in the clone.
const CacheEnv = "ROLLCALL_E2E_CACHE"

// Set is where the built programs are.
type Set struct {
	Etcd, APIServer, ControllerManager, Scheduler string
	Rollcall                                      string
}

// module is one module under e2e/tools and the commands that are built from it.
type module struct {
	dir      string
	requires string   // the required module whose version keys the cache
	takes    string   // how long a first build takes on two cores
	version  string   // the variable that the linker sets to the version, "" for none
	programs []string // each from the package of its name under cmd/
	inRoot   bool     // … or from the module's root
}

var modules = []module{
	{dir: "etcd", requires: "go.etcd.io/etcd/server/v3", takes: "half a minute", programs: []string{"etcd"}, inRoot: true},
	{
		dir: "kubernetes", requires: "k8s.io/kubernetes", takes: "six minutes",
		version:  "k8s.io/component-base/version.gitVersion",
		programs: []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"},
	},
}

// Build builds whatever is not in the cache yet, and the program always. It says
// on log what it is doing. Processes that build at the same time wait for each
// other.
func Build(ctx context.Context, log io.Writer) (Set, error) {
	root, cache, err := folders()
	if err != nil {
		return Set{}, err
	}
	unlock, err := lock(cache, log)
	if err != nil {
		return Set{}, err
	}
	defer unlock()

	paths := map[string]string{}
	for _, m := range modules {
		if err := m.build(ctx, root, cache, paths, log); err != nil {
			return Set{}, err
		}
	}
	program, err := buildProgram(ctx, root, log)
	if err != nil {
		return Set{}, err
	}
	return Set{
		Etcd:              paths["etcd"],
		APIServer:         paths["kube-apiserver"],
		ControllerManager: paths["kube-controller-manager"],
		Scheduler:         paths["kube-scheduler"],
		Rollcall:          program,
	}, nil
}

// folders are the program's own and that of the cache.
func folders() (root, cache string, err error) {
	if root, err = Root(); err != nil {
		return "", "", err
	}
	if cache = os.Getenv(CacheEnv); cache == "" {
		cache = filepath.Join(root, ".cache", "e2e")
	}
	cache, err = filepath.Abs(cache)
	return root, cache, err
}

// Kwok builds kwok, which plays the kubelets of more nodes than package kubelet is
// for, and returns with it the folder of its stages: what its nodes and Pods do.
func Kwok(ctx context.Context, log io.Writer) (program, stages string, err error) {
	root, cache, err := folders()
	if err != nil {
		return "", "", err
	}
	unlock, err := lock(cache, log)
	if err != nil {
		return "", "", err
	}
	defer unlock()
	m := module{dir: "kwok", requires: "sigs.k8s.io/kwok", takes: "a minute", programs: []string{"kwok"}}
	paths := map[string]string{}
	if err := m.build(ctx, root, cache, paths, log); err != nil {
		return "", "", err
	}
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", m.requires)
	list.Dir = filepath.Join(root, "e2e", "tools", m.dir)
	out, err := list.Output()
	if err != nil {
		return "", "", fmt.Errorf("finding the folder of %s: %w", m.requires, err)
	}
	return paths["kwok"], filepath.Join(strings.TrimSpace(string(out)), "kustomize", "stage"), nil
}

// Program builds the program alone, for tests that need no control plane.
func Program(ctx context.Context, log io.Writer) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(root, ".cache", "e2e"), log)
	if err != nil {
		return "", err
	}
	defer unlock()
	return buildProgram(ctx, root, log)
}

// Root is the folder of the program's go.mod: the parent of this module.
func Root() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("asking go for the module's folder: %w", err)
	}
	dir := filepath.Dir(filepath.Dir(strings.TrimSpace(string(out))))
	if _, err := os.Stat(filepath.Join(dir, "cmd", "rollcall")); err != nil {
		return "", fmt.Errorf("cmd/rollcall is not beside the e2e module (looked in %s): run this inside e2e/", dir)
	}
	return dir, nil
}

// buildProgram builds without extra flags, so that nothing is compiled that the
// unit tests and the linter do not need as well.
func buildProgram(ctx context.Context, root string, log io.Writer) (string, error) {
	out := filepath.Join(root, ".cache", "e2e", "rollcall")
	return out, run(ctx, root, log, "go", "build", "-o", out, "./cmd/rollcall")
}

func (m module) build(ctx context.Context, root, cache string, paths map[string]string, log io.Writer) error {
	dir := filepath.Join(root, "e2e", "tools", m.dir)
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", m.requires)
	list.Dir = dir
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("reading the version of %s in %s: %w", m.requires, dir, err)
	}
	version := strings.TrimSpace(string(out))
	// Programs of another toolchain or platform are other programs.
	into := filepath.Join(cache, fmt.Sprintf("%s-%s-%s-%s-%s", m.dir, version, runtime.Version(), runtime.GOOS, runtime.GOARCH))
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	for _, name := range m.programs {
		pkg := m.requires
		if !m.inRoot {
			pkg += "/cmd/" + name
		}
		path := filepath.Join(into, name)
		paths[name] = path
		if _, err := os.Stat(path); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		flags := "-s -w"
		if m.version != "" {
			flags += " -X " + m.version + "=" + version
		}
		stop := progress(log, fmt.Sprintf("building %s %s (the first of a version takes about %s, then it is kept in %s)", name, version, m.takes, into))
		// Built beside its place and moved there, so that an interrupted build
		// leaves nothing that looks finished.
		err := run(ctx, dir, log, "go", "build", "-ldflags", flags, "-o", path+".part", pkg)
		stop()
		if err != nil {
			return err
		}
		if err := os.Rename(path+".part", path); err != nil {
			return err
		}
	}
	return nil
}

// progress says what is being done at once, and every 15 seconds that it still is.
func progress(log io.Writer, what string) (stop func()) {
	start := time.Now()
	_, _ = fmt.Fprintln(log, "e2e:", what)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(15 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_, _ = fmt.Fprintf(log, "e2e: … still building, %s so far\n", time.Since(start).Round(time.Second))
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
		_, _ = fmt.Fprintf(log, "e2e: … done after %s\n", time.Since(start).Round(time.Second))
	}
}

func run(ctx context.Context, dir string, log io.Writer, name string, args ...string) error {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	if err := cmd.Run(); err != nil {
		_, _ = log.Write(out.Bytes())
		return fmt.Errorf("%s %s in %s: %w\n%s", name, strings.Join(args, " "), dir, err, out.String())
	}
	return nil
}

// lock makes processes that share the folder build one after another. The lock
// ends with the process that holds it.
func lock(dir string, log io.Writer) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_, _ = fmt.Fprintln(log, "e2e: waiting for another build in", dir)
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("locking %s: %w", f.Name(), err)
		}
	}
	return func() { _ = f.Close() }, nil
}
