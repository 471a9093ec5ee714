// Package capture writes what package files reads: the objects of a live cluster,
// one file a resource, as `kubectl get … -o json --show-managed-fields` prints
// them, so that somebody else can look at them without the cluster.
//
// What is captured may leave the house. Secrets are never asked for, of ConfigMaps
// the metadata alone is; environment values, arguments that look secret and
// annotations that nobody needs are replaced by digests, from which it can be seen
// that two of them differ and nothing else (see Redactor).
//
// The API server is read politely: in pages, each written out before the next one
// is asked for. Nothing here knows a client or a wall clock.
package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/files"
)

// Reader reads from an API server.
type Reader interface {
	// Raw sends a GET of a path such as "/api/v1/nodes" and returns the body of the
	// answer as it comes. An answer that is an error comes back as an error with the
	// API server's status, as apimachinery's errors package tells them apart.
	Raw(ctx context.Context, path string, query url.Values, accept string) (io.ReadCloser, error)
}

// Options say what is captured, and how it is named.
type Options struct {
	// Namespace narrows workloads, their Pods and what belongs to them; "" is all.
	Namespace string
	// KeepEnv keeps the values of environment variables, and arguments that look secret.
	KeepEnv bool
	// Now is the API server's clock.
	Now func() time.Time

	Context       string // of the kubeconfig
	ServerVersion string
	Version       string // of this program

	// pause waits before a page is asked for again; nil waits by the clock.
	pause func(ctx context.Context, d time.Duration) error
}

// ReadError is the error of a request that got no answer worth having: the capture
// was given up.
type ReadError struct {
	Resource cluster.Resource
	Err      error
}

func (e *ReadError) Error() string { return fmt.Sprintf("cannot read %s: %s", e.Resource, e.Err) }
func (e *ReadError) Unwrap() error { return e.Err }

// Unreadable is the error of a capture without nodes and without any workload:
// nothing could ever be said of it.
type Unreadable struct{ Err error } // of the nodes

func (e *Unreadable) Error() string {
	return fmt.Sprintf("neither nodes nor workloads can be read: %s", e.Err)
}
func (e *Unreadable) Unwrap() error { return e.Err }

// Folder reads the cluster into a folder that exists and is empty, and returns the
// document that stands in it beside the objects. What may not be read is in its
// NotRead. The error is a *ReadError, an *Unreadable, ctx's, or one of writing.
func Folder(ctx context.Context, from Reader, dir string, o Options) (files.CaptureDocument, error) {
	if o.pause == nil {
		o.pause = pause
	}
	redactor, err := NewRedactor(o.KeepEnv)
	if err != nil {
		return files.CaptureDocument{}, err
	}
	c := &capture{ctx: ctx, from: from, dir: dir, o: o, redactor: redactor, failed: map[cluster.Resource]error{}}
	c.doc = files.CaptureDocument{
		APIVersion: files.CaptureVersion, Kind: files.CaptureKind, Context: o.Context, ServerVersion: o.ServerVersion,
		CapturedBy: o.Version, Namespace: o.Namespace, Environment: "Redacted",
		Read: []files.CapturedKind{}, NotRead: []files.CapturedFailure{},
	}
	if o.KeepEnv {
		c.doc.Environment = "Kept"
	}
	settings, err := c.settings()
	if err != nil {
		return c.doc, err
	}
	for _, k := range slices.Concat(settings, kinds) {
		if err := c.kind(k); err != nil {
			return c.doc, err
		}
	}
	c.doc.CapturedAt = o.Now().UTC()
	if why, all := c.unreadable(); all {
		return c.doc, &Unreadable{why}
	}
	raw, err := json.MarshalIndent(c.doc, "", "    ")
	if err != nil {
		return c.doc, err
	}
	return c.doc, os.WriteFile(filepath.Join(dir, DocumentFile), append(raw, '\n'), 0o600)
}

// DocumentFile is the name of the document's file.
const DocumentFile = "capture.json"

// capture is one that is being made.
type capture struct {
	ctx      context.Context
	from     Reader
	dir      string
	o        Options
	redactor *Redactor
	doc      files.CaptureDocument
	failed   map[cluster.Resource]error // of those of which nothing was read
}

// kind reads one resource into its file.
func (c *capture) kind(k kind) (err error) {
	name := filepath.Join(c.dir, string(k.resource)+".json")
	list, err := newList(name)
	if err != nil {
		return err
	}
	defer func() {
		if closed := list.close(); err == nil {
			err = closed
		}
	}()
	read := false
	parts := k.parts(c.o.Namespace)
	for _, p := range parts {
		list.mark()
		failure := c.part(k, p, list)
		switch {
		case failure == nil:
			read = true
			continue
		case c.ctx.Err() != nil:
			return c.ctx.Err()
		case list.err != nil:
			return list.err
		case !answered(failure) || apierrors.IsUnauthorized(failure):
			return &ReadError{k.resource, failure}
		}
		if err := list.rollback(); err != nil {
			return err
		}
		reason, detail := classify(failure)
		f := files.CapturedFailure{Resource: k.resource, Namespace: p.namespace, Reason: reason, Detail: detail}
		if len(parts) == 1 {
			f.Namespace = "" // all that was asked for
		}
		if !slices.Contains(c.doc.NotRead, f) {
			c.doc.NotRead = append(c.doc.NotRead, f)
		}
		if c.failed[k.resource] == nil {
			c.failed[k.resource] = failure
		}
	}
	if !read {
		return os.Remove(name)
	}
	delete(c.failed, k.resource)
	c.doc.Read = append(c.doc.Read, files.CapturedKind{Resource: k.resource, Objects: list.objects})
	return list.end()
}

// unreadable tells whether neither nodes nor any workload was read.
func (c *capture) unreadable() (error, bool) {
	for _, r := range []cluster.Resource{cluster.Nodes, cluster.DaemonSets, cluster.Deployments, cluster.StatefulSets} {
		if c.failed[r] == nil {
			return nil, false
		}
	}
	return c.failed[cluster.Nodes], true
}

// answered tells whether an error is an answer of the API server, bad as it may be.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// classify is the reason of a NotRead. The API server's own sentence names the user
// and stays out.
func classify(err error) (reason, detail string) {
	switch {
	case apierrors.IsForbidden(err):
		return "Forbidden", ""
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return "Absent", "the API server does not have it"
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return "Failed", strings.TrimSpace(fmt.Sprintf("the API server answered %d %s", status.Status().Code, status.Status().Reason))
	}
	return "Failed", ""
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
