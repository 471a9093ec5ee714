package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/e2e/controlplane"
	"github.com/rollcall-k8s/rollcall/e2e/kubelet"
	"github.com/rollcall-k8s/rollcall/probes/refusal"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// refused is one way in which a Pod is refused, by the scheduler or by the API
// server. Each has a namespace of its own and, where the scheduler refuses, nodes of
// its own, which its workload selects.
type refused struct {
	name  string // of the namespace and of the workload
	kind  string // of the workload: "DaemonSet", "Deployment" or "StatefulSet"
	nodes []kubelet.Node
	// replicas of a Deployment; 0 means 1.
	replicas int32
	// before makes what must be there first.
	before func(context.Context, *refusals, refused) error
	// spec makes the Pod one that is refused; strategy may change the DaemonSet.
	spec     func(*corev1.PodSpec)
	strategy func(*appsv1.DaemonSet)
	// rolls tells that the first Pods are accepted, and that the refused ones are of
	// another revision.
	rolls bool
	// says is a part of the control plane's sentence, without which the case is not the
	// one that it claims to be.
	says string
	code report.Code
	// root is the root cause, where that is another code.
	root report.Code
}

// refusals is the control plane on which they all are refused.
type refusals struct {
	*cluster
	webhooks webhooks
}

// What the scheduler and the API server refuse is known by its code, in the report of
// the built program and from the sentence alone.
func TestRefusalsAreKnownByTheirCodes(t *testing.T) {
	t.Parallel()
	cases := append(refusedByScheduler(), refusedByServer()...)
	var nodes []kubelet.Node
	for _, c := range cases {
		for i, n := range c.nodes {
			n.Name = fmt.Sprintf("%s-%d", c.name, i+1)
			labels := map[string]string{ownNode: c.name}
			for k, v := range n.Labels {
				labels[k] = v
			}
			n.Labels = labels
			nodes = append(nodes, n)
		}
	}
	nodes = append(nodes, kubelet.Node{Name: "plain-1"}) // for those that the API server refuses
	r := &refusals{cluster: startCluster(t, controlplane.Options{ServiceAccounts: true, Admission: limitedClass}, kubelet.Options{}, nodes...)}
	r.webhooks = serveWebhooks(t, r.Authority)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := r.prepare(ctx); err != nil {
		t.Fatal(err)
	}

	heard := make([]string, len(cases))
	index := make([]int, len(cases))
	for i := range index {
		index[i] = i
	}
	if err := each(ctx, index, func(i int) error {
		var err error
		if heard[i], err = r.refuse(ctx, cases[i]); err != nil {
			return fmt.Errorf("%s: %w", cases[i].name, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		t.Run("sentence/"+c.name, func(t *testing.T) {
			t.Log(heard[i])
			if wrong := misread(c, heard[i]); wrong != "" {
				t.Errorf("%s\n%s", wrong, heard[i])
			}
		})
	}
	rep, res := r.triage(t, operator, "--all")
	for _, c := range cases {
		t.Run("report/"+c.name, func(t *testing.T) {
			key := report.WorkloadKey{Kind: report.Clean(c.kind), Namespace: report.Clean(c.name), Name: report.Clean(c.name)}
			w := rep.Workload(key)
			if w == nil {
				t.Fatalf("the report has no %s", key)
			}
			root := c.code
			if c.root != "" {
				root = c.root
			}
			if w.Verdict.RootCause != root || !hasCode(w.Findings, c.code) {
				t.Errorf("%s is %s by %q with %v, want %s as the root cause and %s found: %s", key, w.Verdict.Attribution, w.Verdict.RootCause, codesOf(w.Findings), root, c.code, w.Verdict.Summary)
			}
		})
	}
	if t.Failed() {
		t.Log(res.stderr)
	}
}

func codesOf(findings []report.Finding) (codes []report.Code) {
	for _, f := range findings {
		codes = append(codes, f.Code)
	}
	return codes
}

func hasCode(findings []report.Finding, code report.Code) bool {
	for _, f := range findings {
		if f.Code == code {
			return true
		}
	}
	return false
}

// misread says what the parser makes of the sentence where that is wrong.
func misread(c refused, sentence string) string {
	if len(c.nodes) == 0 {
		got, ok := refusal.ParseCreation(sentence)
		if !ok || got.Code != c.code {
			return fmt.Sprintf("read as %q (known: %v), want %s", got.Code, ok, c.code)
		}
		return ""
	}
	got, ok := refusal.ParseScheduling(sentence)
	if !ok {
		return "not read as a sentence of the scheduler's"
	}
	found := false
	for _, r := range got.Reasons {
		if r.Code == "" {
			return fmt.Sprintf("the reason %q is not known", r.Text)
		}
		found = found || r.Code == c.code
	}
	if want := c.code; !found && want != report.SurgePortConflict && want != report.SurgeNoRoom {
		return fmt.Sprintf("no reason is %s: %+v", want, got.Reasons)
	}
	return ""
}

// refuse brings one about and returns the control plane's sentence.
func (r *refusals) refuse(ctx context.Context, c refused) (string, error) {
	if _, err := r.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.name}}, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	if err := r.until(ctx, func() (string, error) {
		_, err := r.client.CoreV1().ServiceAccounts(c.name).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "the service account of the namespace", nil
		}
		return "", err
	}); err != nil {
		return "", err
	}
	if c.before != nil {
		if err := c.before(ctx, r, c); err != nil {
			return "", err
		}
	}
	template := c.template()
	if len(c.nodes) == 0 {
		// Policies and webhooks take a moment to be in force, quotas to be counted.
		if err := r.untilRefused(ctx, c, template); err != nil {
			return "", err
		}
	}
	if err := r.create(ctx, c, template); err != nil {
		return "", err
	}
	var sentence string
	err := r.until(ctx, func() (awaits string, err error) {
		if len(c.nodes) == 0 {
			sentence, awaits, err = r.refusedCreation(ctx, c)
		} else {
			sentence, awaits, err = r.refusedScheduling(ctx, c)
		}
		return awaits, err
	})
	return sentence, err
}

// until looks again and again until nothing is awaited.
func (r *refusals) until(ctx context.Context, look func() (awaits string, err error)) error {
	for {
		awaits, err := look()
		if err != nil || awaits == "" {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s: %w", awaits, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// untilRefused asks the API server, without creating anything, until it refuses the
// Pod as it is to.
func (r *refusals) untilRefused(ctx context.Context, c refused, t corev1.PodTemplateSpec) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "would-be", Labels: t.Labels}, Spec: t.Spec}
	return r.until(ctx, func() (string, error) {
		_, err := r.client.CoreV1().Pods(c.name).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && strings.Contains(err.Error(), c.says) {
			return "", nil
		}
		return fmt.Sprintf("a refusal that says %q; the last answer: %v", c.says, err), nil
	})
}

func (c refused) template() corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": c.name}}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "app", Image: "registry.example/app:v1"}},
	}}
	if len(c.nodes) > 0 {
		t.Spec.NodeSelector = map[string]string{ownNode: c.name}
	}
	if c.spec != nil {
		c.spec(&t.Spec)
	}
	return t
}

func (r *refusals) create(ctx context.Context, c refused, template corev1.PodTemplateSpec) error {
	meta := metav1.ObjectMeta{Name: c.name, Namespace: c.name}
	selector := &metav1.LabelSelector{MatchLabels: template.Labels}
	apps := r.client.AppsV1()
	replicas := max(1, c.replicas)
	switch c.kind {
	case "Deployment":
		_, err := apps.Deployments(c.name).Create(ctx, &appsv1.Deployment{ObjectMeta: meta,
			Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: template}}, metav1.CreateOptions{})
		return err
	case "StatefulSet":
		_, err := apps.StatefulSets(c.name).Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta,
			Spec: appsv1.StatefulSetSpec{Replicas: &replicas, ServiceName: c.name, Selector: selector, Template: template}}, metav1.CreateOptions{})
		return err
	}
	ds := &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}}
	if c.strategy != nil {
		c.strategy(ds)
	}
	if _, err := apps.DaemonSets(c.name).Create(ctx, ds, metav1.CreateOptions{}); err != nil || !c.rolls {
		return err
	}
	if err := r.until(ctx, func() (string, error) {
		ds, err := apps.DaemonSets(c.name).Get(ctx, c.name, metav1.GetOptions{})
		if err != nil || ds.Status.NumberAvailable > 0 {
			return "", err
		}
		return "the first Pods to be available", nil
	}); err != nil {
		return err
	}
	_, err := apps.DaemonSets(c.name).Patch(ctx, c.name, types.StrategicMergePatchType, []byte(image(2)), metav1.PatchOptions{FieldManager: "helm"})
	return err
}

// refusedScheduling is what the scheduler says of a Pod of the workload.
func (r *refusals) refusedScheduling(ctx context.Context, c refused) (sentence, awaits string, err error) {
	pods, err := r.client.CoreV1().Pods(c.name).List(ctx, metav1.ListOptions{LabelSelector: "app=" + c.name})
	if err != nil {
		return "", "", err
	}
	seen := ""
	for _, p := range pods.Items {
		for _, cond := range p.Status.Conditions {
			if cond.Type != corev1.PodScheduled || cond.Status != corev1.ConditionFalse {
				continue
			}
			if strings.Contains(cond.Message, c.says) {
				return cond.Message, "", nil
			}
			seen = cond.Reason + ": " + cond.Message
		}
	}
	return "", fmt.Sprintf("the scheduler to say %q of one of %d Pods; it says %q", c.says, len(pods.Items), seen), nil
}

// refusedCreation is what the workload's controller says of the API server's answer.
func (r *refusals) refusedCreation(ctx context.Context, c refused) (sentence, awaits string, err error) {
	events, err := r.client.CoreV1().Events(c.name).List(ctx, metav1.ListOptions{FieldSelector: "reason=FailedCreate"})
	if err != nil {
		return "", "", err
	}
	for _, e := range events.Items {
		if strings.Contains(e.Message, c.says) {
			return e.Message, "", nil
		}
	}
	return "", fmt.Sprintf("an event FailedCreate that says %q; there are %d others", c.says, len(events.Items)), nil
}

// requests are what the only container of a Pod asks for.
func requests(what corev1.ResourceName, howMuch string) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) {
		list := corev1.ResourceList{what: resource.MustParse(howMuch)}
		s.Containers[0].Resources.Requests = list
		if strings.Contains(string(what), "/") { // extended resources cannot be overcommitted
			s.Containers[0].Resources.Limits = list
		}
	}
}
