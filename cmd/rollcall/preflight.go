package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/internal/defaults"
	"github.com/rollcall-k8s/rollcall/internal/headless"
	"github.com/rollcall-k8s/rollcall/internal/kube"
	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/files"
	"github.com/rollcall-k8s/rollcall/probes/files/capture"
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/action"
)

// preflightOptions are those of a look at a rollout before it begins.
type preflightOptions struct {
	diagnoseOptions
	manifest string
}

// preflightTimeout is how long the cluster may take to be read: all of its Pods are,
// once, for what is free on each node.
const preflightTimeout = 2 * time.Minute

func (a *app) preflightCommand() *cobra.Command {
	o := &preflightOptions{diagnoseOptions: diagnoseOptions{triageOptions: triageOptions{app: a}}}
	cmd := &cobra.Command{
		Use:   "preflight {TYPE/NAME | -f MANIFEST}",
		Short: "Say what a rollout would break, before it begins",
		Long: `Judges a workload as it is or, with -f, as a manifest would make it: what would
break at once, what makes the rollout risky, how long it would take, what it costs
and how to begin small. The cluster is read once, all of its Pods included; nothing
in it is changed. The manifest is sent to the API server as a dry run, unless the
session is read-only.

With --cluster-from the cluster is what files say of it, as ` + "`diagnose -f`" + ` and
` + "`capture`" + ` have them, and nothing is asked of a live one.

Exit codes: 0 passed, 1 findings at or above --fail-on, 2 it could not be answered.`,
		Example: a.examples("preflight ds/calico-node -n kube-system", "preflight ds/calico-node -n kube-system -f new.yaml", "preflight -f new.yaml --cluster-from ./dump -o json --fail-on warning"),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			t, err := parseTarget(args)
			o.target = &t
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.hurried = cmd.Flags().Changed("timeout")
			if err := o.complete(cmd.Flags().Changed("filename")); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
		ValidArgsFunction: completeTarget,
	}
	a.connectionFlags(cmd)
	fs := cmd.Flags()
	fs.StringVarP(&o.manifest, "filename", "f", "", "Manifest with the workload as it is to become, - for standard input; without it the live one is judged")
	fs.StringArrayVar(&o.paths, "cluster-from", nil, "Files, folder or archive that say what the cluster is, - for standard input; may be given several times")
	fs.StringVar(&o.asOf, "as-of", "", "The moment that such files are judged at, RFC 3339; default the latest that they vouch for")
	fs.StringVarP(&o.output, "output", "o", "text", "Form of the report: "+strings.Join(headless.Formats, ", "))
	fs.StringVar(&o.failOn, "fail-on", string(report.Critical), "Exit with 1 from this severity on: critical (it would break something), warning or info")
	fs.DurationVar(&o.timeout, "timeout", preflightTimeout, "How long reading a live cluster may take, 0 for ever")
	fixed(cmd, "output", headless.Formats)
	fixed(cmd, "fail-on", []string{string(report.Critical), string(report.Warning), string(report.Info)})
	return cmd
}

func (o *preflightOptions) complete(withManifest bool) error {
	if err := o.triageOptions.complete(); err != nil {
		return err
	}
	switch {
	case o.target == nil && !withManifest:
		return usagef("nothing to look at: name a workload, as in ds/calico-node, or give a manifest with -f")
	case withManifest && o.manifest == "":
		return usagef("-f names no file")
	case slices.Contains(o.paths, ""):
		return usagef("--cluster-from names no file")
	case o.manifest == "-" && slices.Contains(o.paths, "-"):
		return usagef("standard input can be the manifest or the cluster, not both")
	case o.asOf != "" && len(o.paths) == 0:
		return usagef("--as-of goes with --cluster-from: a live cluster is judged as it is now")
	}
	return o.moment()
}

func (o *preflightOptions) run(ctx context.Context) error {
	m, err := o.read(ctx)
	if err != nil {
		return err
	}
	var r *report.Report
	if len(o.paths) > 0 {
		r, err = o.offline(ctx, m)
	} else {
		r, err = o.live(ctx, m)
	}
	if err != nil {
		return err
	}
	return o.print(o.stamp(r))
}

// read reads the manifest, nil where none was given, and completes the target by it.
func (o *preflightOptions) read(ctx context.Context) (*files.Manifest, error) {
	if o.manifest == "" {
		return nil, nil
	}
	want := files.Wanted{Namespace: o.namespace()}
	if o.target != nil {
		want.Kind, want.Name = o.target.kind, o.target.name
	}
	m, err := files.ReadManifest(ctx, o.manifest, o.in, want)
	if err != nil {
		return nil, err
	}
	o.target = &target{m.Kind, m.Object.GetName()}
	fillIn(m.Object)
	return m, nil
}

// offline judges against what files say of the cluster.
func (o *preflightOptions) offline(ctx context.Context, m *files.Manifest) (*report.Report, error) {
	s, err := o.diagnoseOptions.read(ctx)
	if err != nil {
		return nil, err
	}
	namespace, err := o.namespaceIn(s, m)
	if err != nil {
		return nil, err
	}
	ch := o.change(m, namespace)
	ch.Live = liveIn(s, ch.Target)
	if m != nil {
		ch.DryRuns = []probes.DryRun{{Kind: m.Kind, NotSent: "the cluster is read from files"}}
	}
	return judge(s, ch)
}

// judge runs the preflight. A workload that is not there gets the nearest name.
func judge(s *cluster.Snapshot, ch probes.Change) (*report.Report, error) {
	r, err := probes.Preflight(s, ch)
	if err == nil {
		return r, nil
	}
	var there []string
	for _, o := range workloads(s, string(ch.Target.Kind)) {
		if o.GetNamespace() == string(ch.Target.Namespace) {
			there = append(there, o.GetName())
		}
	}
	if near := nearest(string(ch.Target.Name), there); near != "" {
		return nil, fmt.Errorf("%w; did you mean %s?", err, near)
	}
	return nil, fmt.Errorf("%w; check the name and the namespace (-n), or give the manifest that makes it with -f", err)
}

// namespaceIn is the namespace that is meant: that of -n, of the manifest, or of the one
// workload of that name in the files.
func (o *preflightOptions) namespaceIn(s *cluster.Snapshot, m *files.Manifest) (string, error) {
	if ns := o.namespace(); ns != "" {
		return ns, nil
	}
	if m != nil && m.Object.GetNamespace() != "" {
		return m.Object.GetNamespace(), nil
	}
	var spaces, all []string
	for _, w := range workloads(s, o.target.kind) {
		all = append(all, w.GetName())
		if w.GetName() == o.target.name {
			spaces = append(spaces, w.GetNamespace())
		}
	}
	switch {
	case len(spaces) == 1:
		return spaces[0], nil
	case len(spaces) > 1:
		return "", usagef("%s is in several namespaces: %s; name one with -n", o.target, strings.Join(spaces, ", "))
	case m != nil:
		return "default", nil
	}
	if near := nearest(o.target.name, all); near != "" {
		return "", fmt.Errorf("there is no %s in the files; did you mean %s?", o.target, near)
	}
	return "", fmt.Errorf("there is no %s in the files; give the manifest that makes it with -f", o.target)
}

// change is what is judged, as far as it does not need the cluster.
func (o *preflightOptions) change(m *files.Manifest, namespace string) probes.Change {
	ch := probes.Change{Target: o.target.key(namespace), FailOn: o.threshold}
	if m == nil {
		return ch
	}
	m.Object.SetNamespace(namespace)
	ch.New, ch.Origin, ch.APIVersion = m.Object, report.Clean(m.Place()), m.APIVersion
	for _, f := range m.Strays {
		ch.Strays = append(ch.Strays, report.Clean(f))
	}
	return ch
}

// live judges against the cluster itself.
func (o *preflightOptions) live(ctx context.Context, m *files.Manifest) (*report.Report, error) {
	conn, err := o.connectWithin(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	namespace := conn.Namespace
	if m != nil && o.namespace() == "" && m.Object.GetNamespace() != "" {
		namespace = m.Object.GetNamespace()
	}
	s, err := o.snapshot(ctx, conn, namespace)
	if err != nil {
		return nil, err
	}
	ch := o.change(m, namespace)
	api := conn.API()
	if ch.Live, err = o.fetch(ctx, api, namespace); err != nil {
		return nil, err
	}
	template := templateOf(ch.New)
	if template == nil {
		template = templateOf(ch.Live)
	}
	if template != nil {
		ch.References = ask(ctx, api, probes.References(namespace, &template.Spec))
	}
	if m != nil {
		ch.DryRuns = try(ctx, api, m, namespace, template)
	}
	return judge(s, ch)
}

// snapshot reads the whole cluster once. What it holds is written beside, without what
// is secret, and read back as a capture is: both give the same answers.
func (o *preflightOptions) snapshot(ctx context.Context, conn *kube.Connection, namespace string) (*cluster.Snapshot, error) {
	dir, err := os.MkdirTemp("", "rollcall-preflight-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a temporary folder: %w; set TMPDIR to one that can be written", err)
	}
	defer os.RemoveAll(dir)
	opts := capture.Options{Now: conn.Clock.Now, Context: conn.Context, ServerVersion: conn.Version(), Version: version}
	_, err = capture.Folder(ctx, conn, dir, opts)
	var nothing *capture.Unreadable
	var unread *capture.ReadError
	if errors.As(err, &nothing) && namespace != "" {
		opts.Namespace = namespace // all namespaces may not be read, this one perhaps
		_, err = capture.Folder(ctx, conn, dir, opts)
	}
	switch {
	case errors.As(err, &nothing):
		return nil, conn.Unreadable(nothing.Err, namespace)
	case errors.As(err, &unread):
		return nil, conn.Explain("read "+string(unread.Resource), unread.Err)
	case err != nil:
		return nil, conn.Explain("read the cluster", err)
	}
	s, _, err := files.Load(ctx, []string{dir}, files.Options{Grace: o.nodeGrace,
		Source: cluster.Source{Type: "cluster", Context: conn.Context, Server: conn.Server, Version: conn.Version()}})
	return s, err
}

// fetch reads the live workload verbatim; nil where there is none.
func (o *preflightOptions) fetch(ctx context.Context, api kube.API, namespace string) (any, error) {
	got, err := api.Get(ctx, workloadRef(o.target.kind, namespace, o.target.name))
	switch {
	case errors.Is(err, action.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	into := map[string]any{"DaemonSet": new(appsv1.DaemonSet), "Deployment": new(appsv1.Deployment), "StatefulSet": new(appsv1.StatefulSet)}[o.target.kind]
	if err := json.Unmarshal(got.Raw, into); err != nil {
		return nil, fmt.Errorf("cannot read %s %s/%s: %w", o.target.kind, namespace, o.target.name, err)
	}
	fillIn(into)
	return into, nil
}

func workloadRef(kind, namespace, name string) action.Ref {
	return action.Ref{Group: "apps", Version: "v1", Resource: strings.ToLower(kind) + "s", Kind: kind, Namespace: namespace, Name: name}
}

// asked are the kinds whose existence is asked for.
var asked = map[string]action.Ref{
	"ConfigMap":             {Version: "v1", Resource: "configmaps"},
	"Secret":                {Version: "v1", Resource: "secrets"},
	"ServiceAccount":        {Version: "v1", Resource: "serviceaccounts"},
	"PersistentVolumeClaim": {Version: "v1", Resource: "persistentvolumeclaims"},
	"PriorityClass":         {Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"},
	"RuntimeClass":          {Group: "node.k8s.io", Version: "v1", Resource: "runtimeclasses"},
}

// ask finds out whether what a template refers to exists.
func ask(ctx context.Context, api kube.API, list []probes.Reference) map[string]probes.Answer {
	out := map[string]probes.Answer{}
	for _, r := range list {
		ref := asked[r.Kind]
		ref.Kind, ref.Namespace, ref.Name = r.Kind, r.Namespace, r.Name
		there, err := api.Exists(ctx, ref)
		a := probes.Answer{Existence: probes.Missing}
		switch {
		case errors.Is(err, action.ErrForbidden):
			a = probes.Answer{Existence: probes.Unknown, Why: "may not be read"}
		case err != nil:
			a = probes.Answer{Existence: probes.Unknown, Why: report.Clean(err.Error())}
		case there:
			a.Existence = probes.Exists
		}
		out[r.Key()] = a
	}
	return out
}

// try asks the API server what it would say of the manifest, and of a Pod made of its
// template: quotas, Pod security and priority classes speak on Pods alone.
func try(ctx context.Context, api kube.API, m *files.Manifest, namespace string, template *corev1.PodTemplateSpec) []probes.DryRun {
	answer := func(kind string, t kube.Trial, err error) probes.DryRun {
		d := probes.DryRun{Kind: kind, Refused: t.Refused, Warnings: t.Warnings}
		switch {
		case errors.Is(err, action.ErrReadOnly):
			d.NotSent = "dry run not sent: the session is read-only"
		case errors.Is(err, action.ErrForbidden):
			d.NotSent = "you may not do it, not even as a dry run"
		case err != nil:
			d.NotSent = report.Clean(err.Error())
		}
		return d
	}
	ref := workloadRef(m.Kind, namespace, m.Object.GetName())
	if group, version, ok := strings.Cut(m.APIVersion, "/"); ok {
		ref.Group, ref.Version = group, version
	}
	body, err := kube.Applicable(m.Raw, namespace)
	if err != nil {
		return []probes.DryRun{answer(m.Kind, kube.Trial{}, err)}
	}
	t, err := api.TryApply(ctx, ref, body)
	out := []probes.DryRun{answer(m.Kind, t, err)}
	if t.Refused != "" || errors.Is(err, action.ErrReadOnly) {
		return out
	}
	pod := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec}
	pod.Name, pod.GenerateName, pod.Namespace = "", m.Object.GetName()+"-", namespace
	if body, err = json.Marshal(&pod); err == nil {
		t, err = api.TryCreate(ctx, action.Ref{Version: "v1", Resource: "pods", Kind: "Pod", Namespace: namespace}, body)
	}
	return append(out, answer("Pod", t, err))
}

// fillIn fills in what a manifest leaves out, as the API server does.
func fillIn(o any) {
	switch o := o.(type) {
	case *appsv1.DaemonSet:
		defaults.DaemonSet(&o.Spec)
	case *appsv1.Deployment:
		defaults.Deployment(&o.Spec)
	case *appsv1.StatefulSet:
		defaults.StatefulSet(&o.Spec)
	}
}

func templateOf(o any) *corev1.PodTemplateSpec {
	switch o := o.(type) {
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	}
	return nil
}

// workloads are those of a kind.
func workloads(s *cluster.Snapshot, kind string) []metav1.Object {
	var out []metav1.Object
	switch kind {
	case "DaemonSet":
		for _, o := range s.DaemonSets {
			out = append(out, o)
		}
	case "Deployment":
		for _, o := range s.Deployments {
			out = append(out, o)
		}
	case "StatefulSet":
		for _, o := range s.StatefulSets {
			out = append(out, o)
		}
	}
	return out
}

// liveIn is the workload as files have it, with its defaults filled in.
func liveIn(s *cluster.Snapshot, k report.WorkloadKey) any {
	for _, o := range workloads(s, string(k.Kind)) {
		if o.GetNamespace() != string(k.Namespace) || o.GetName() != string(k.Name) {
			continue
		}
		switch o := o.(type) {
		case *appsv1.DaemonSet:
			c := o.DeepCopy()
			fillIn(c)
			return c
		case *appsv1.Deployment:
			c := o.DeepCopy()
			fillIn(c)
			return c
		case *appsv1.StatefulSet:
			c := o.DeepCopy()
			fillIn(c)
			return c
		}
	}
	return nil
}
