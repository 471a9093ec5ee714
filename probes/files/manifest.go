package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// Manifest is one workload of a manifest, as somebody means to apply it.
type Manifest struct {
	Object     metav1.Object // *appsv1.DaemonSet, *appsv1.Deployment or *appsv1.StatefulSet, without defaults
	APIVersion string        // as written; Object is decoded as apps/v1 whatever it says
	Kind       string
	Raw        []byte // the document as JSON, as it stands
	File       string
	Line       int
	Strays     []string // what the kind does not have, by path, and keys that differ in case
}

// Place is where it stands: "new.yaml:3".
func (m *Manifest) Place() string { return fmt.Sprintf("%s:%d", m.File, m.Line) }

// Wanted names the workload that is looked for in a manifest. An empty field takes any.
type Wanted struct{ Kind, Namespace, Name string }

var workloadKinds = map[string]func() metav1.Object{
	"DaemonSet":   func() metav1.Object { return new(appsv1.DaemonSet) },
	"Deployment":  func() metav1.Object { return new(appsv1.Deployment) },
	"StatefulSet": func() metav1.Object { return new(appsv1.StatefulSet) },
}

// ReadManifest finds the workload in a manifest: YAML or JSON, several documents, Lists;
// "-" reads stdin. The error is one line with file and line number.
func ReadManifest(ctx context.Context, path string, stdin io.Reader, want Wanted) (*Manifest, error) {
	l := newLoader(ctx)
	var all []document
	l.take = func(d document) { all = flattened(l, all, d) }
	l.path(path, stdin)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case len(l.stats.Problems) > 0:
		return nil, errors.New(l.stats.Problems[0].String())
	case len(all) == 0:
		return nil, fmt.Errorf("%s holds no object", path)
	}
	d, err := choose(path, all, want)
	if err != nil {
		return nil, err
	}
	return decodeManifest(d)
}

// flattened adds a document, or the items of a List, to those found so far.
func flattened(l *loader, all []document, d document) []document {
	d.raw = bytes.Clone(d.raw)
	if d.head == nil {
		d.head = peek(d.raw)
	}
	switch {
	case !d.head.object:
		l.problem(d.file, d.line, "is not a Kubernetes object: it is no mapping with a kind")
	case strings.HasSuffix(d.head.Kind, "List") && d.head.Metadata.Name == "":
		for _, raw := range d.head.Items {
			all = flattened(l, all, document{file: d.file, line: d.line, raw: raw})
		}
	case d.head.Kind == "":
		l.problem(d.file, d.line, "is not a Kubernetes object: it has no kind")
	default:
		all = append(all, d)
	}
	return all
}

// choose picks the document that is meant.
func choose(path string, all []document, want Wanted) (document, error) {
	var found, near []document
	for _, d := range all {
		switch {
		case want.Kind == "" && workloadKinds[d.head.Kind] == nil, want.Kind != "" && d.head.Kind != want.Kind:
		case want.Name != "" && d.head.Metadata.Name != want.Name, want.Namespace != "" && namespaceOf(d) != "" && namespaceOf(d) != want.Namespace:
			near = append(near, d)
		default:
			found = append(found, d)
		}
	}
	title := func(d document) string {
		s := d.head.Kind + " " + d.head.Metadata.Name
		if ns := namespaceOf(d); ns != "" {
			s = d.head.Kind + " " + ns + "/" + d.head.Metadata.Name
		}
		return fmt.Sprintf("%s (line %d)", s, d.line)
	}
	list := func(ds []document) string {
		var names []string
		for i, d := range ds {
			if i == 5 {
				names = append(names, fmt.Sprintf("%d more", len(ds)-i))
				break
			}
			names = append(names, title(d))
		}
		return strings.Join(names, ", ")
	}
	wanted := strings.TrimSpace(want.Kind + " " + strings.TrimPrefix(want.Namespace+"/"+want.Name, "/"))
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1 && want.Name != "":
		return document{}, fmt.Errorf("%s:%d holds %s a second time: the first one is on line %d", found[1].file, found[1].line, wanted, found[0].line)
	case len(found) > 1:
		return document{}, fmt.Errorf("%s holds several workloads: %s; name the one that is meant, as in ds/NAME", path, list(found))
	case len(near) > 0:
		return document{}, fmt.Errorf("%s:%d: there is no %s in it, but %s", near[0].file, near[0].line, wanted, list(near))
	case want.Kind == "":
		return document{}, fmt.Errorf("%s:%d: there is no DaemonSet, Deployment or StatefulSet in it, but %s", all[0].file, all[0].line, list(all))
	}
	return document{}, fmt.Errorf("%s:%d: there is no %s in it, but %s", all[0].file, all[0].line, want.Kind, list(all))
}

func namespaceOf(d document) string {
	var o struct {
		Metadata struct {
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(d.raw, &o) // a namespace of the wrong type is found when the object is decoded
	return o.Metadata.Namespace
}

func decodeManifest(d document) (*Manifest, error) {
	m := &Manifest{Object: workloadKinds[d.head.Kind](), APIVersion: d.head.APIVersion, Kind: d.head.Kind, Raw: d.raw, File: d.file, Line: d.line}
	strays, err := kjson.UnmarshalStrict(d.raw, m.Object)
	if err != nil {
		return nil, fmt.Errorf("%s is not a valid %s: %s", m.Place(), m.Kind, strings.TrimPrefix(err.Error(), "json: "))
	}
	if m.Object.GetName() == "" {
		return nil, fmt.Errorf("%s is a %s without a name", m.Place(), m.Kind)
	}
	for _, s := range strays {
		m.Strays = append(m.Strays, s.Error())
	}
	slices.Sort(m.Strays)
	return m, nil
}
