package api

import (
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

func runtimeRaw(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }

func TestPatchesOfEachKind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		kind  types.PatchType
		patch string
		sub   string
		check func(*appsv1.DaemonSet) bool
	}{
		{"a JSON Patch", types.JSONPatchType, `[{"op":"test","path":"/metadata/generation","value":1},{"op":"add","path":"/spec/updateStrategy","value":{"type":"OnDelete"}}]`, "",
			func(d *appsv1.DaemonSet) bool {
				return d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
			}},
		{"a merge patch replaces lists", types.MergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"other","image":"x:2"}]}}}}`, "",
			func(d *appsv1.DaemonSet) bool {
				return len(d.Spec.Template.Spec.Containers) == 1 && d.Spec.Template.Spec.Containers[0].Name == "other"
			}},
		{"a strategic merge patch merges lists by key", types.StrategicMergePatchType, `{"spec":{"template":{"spec":{"containers":[{"name":"other","image":"x:2"}]}}}}`, "",
			func(d *appsv1.DaemonSet) bool { return len(d.Spec.Template.Spec.Containers) == 2 }},
		{"an undo replaces the template", types.StrategicMergePatchType, `{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"agent"}},"spec":{"containers":[{"name":"old","image":"x:0"}]}}}}`, "",
			func(d *appsv1.DaemonSet) bool {
				return d.Spec.Template.Spec.Containers[0].Name == "old" && len(d.Spec.Template.Spec.Containers) == 1 && d.Annotations[appsv1.DeprecatedTemplateGeneration] == "2"
			}},
		{"a patch of the status", types.MergePatchType, `{"status":{"numberReady":4},"spec":{"minReadySeconds":9}}`, "status",
			func(d *appsv1.DaemonSet) bool {
				return d.Status.NumberReady == 4 && d.Spec.MinReadySeconds == 0 && d.Generation == 1
			}},
		{"server-side apply", types.ApplyYAMLPatchType, "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec: {minReadySeconds: 7}\n", "",
			func(d *appsv1.DaemonSet) bool {
				return d.Spec.MinReadySeconds == 7 && d.Spec.Template.Spec.Containers[0].Image != ""
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, _ := newServer(t)
			create(t, s, daemonSet("agent"))
			o, err := s.Patch("tester", daemonSetsGVR, "kube-system", "agent", c.kind, []byte(c.patch), c.sub)
			if err != nil {
				t.Fatal(err)
			}
			if stored := get[*appsv1.DaemonSet](t, s, "kube-system", "agent"); !c.check(stored) || stored != o {
				t.Errorf("stored: %+v\nreturned the same: %v", stored.Spec, stored == o)
			}
		})
	}
}

func TestPatchesThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, patch string
		kind        types.PatchType
		code        int32
		message     string
	}{
		{"a test that fails", `[{"op":"test","path":"/metadata/uid","value":"other"}]`, types.JSONPatchType, http.StatusUnprocessableEntity, "rejected our request"},
		{"a path that is not there", `[{"op":"remove","path":"/spec/nothing"}]`, types.JSONPatchType, http.StatusUnprocessableEntity, "rejected our request"},
		{"no patch at all", `{"op":`, types.JSONPatchType, http.StatusBadRequest, ""},
		{"bad JSON", `{"spec"`, types.MergePatchType, http.StatusBadRequest, ""},
		{"a wrong type", `{"spec":{"minReadySeconds":"soon"}}`, types.MergePatchType, http.StatusUnprocessableEntity, "patch: Invalid value"},
		{"a stale version", `{"metadata":{"resourceVersion":"1"}}`, types.MergePatchType, http.StatusConflict, "please apply your changes to the latest version"},
		{"another UID", `{"metadata":{"uid":"other"}}`, types.MergePatchType, http.StatusConflict, "Precondition failed"},
		{"another name", `{"metadata":{"name":"other"}}`, types.MergePatchType, http.StatusBadRequest, "does not match the name on the URL"},
		{"an unknown strategy", `{"spec":{"updateStrategy":{"type":"Slowly"}}}`, types.MergePatchType, http.StatusUnprocessableEntity,
			`spec.updateStrategy: Unsupported value: {"type":"Slowly"`},
		{"no budget at all", `{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":0}}}}`, types.MergePatchType, http.StatusUnprocessableEntity,
			"spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"},
		{"two budgets", `{"spec":{"updateStrategy":{"rollingUpdate":{"maxSurge":"10%"}}}}`, types.MergePatchType, http.StatusUnprocessableEntity,
			`spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: "10%": may not be set when maxUnavailable is non-zero`},
		{"more than all", `{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":"101%"}}}}`, types.MergePatchType, http.StatusUnprocessableEntity,
			"must not be greater than 100%"},
		{"no number", `{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":"two"}}}}`, types.MergePatchType, http.StatusUnprocessableEntity,
			"a valid percent string must be"},
		{"another selector", `{"spec":{"selector":{"matchLabels":{"app":"other"}},"template":{"metadata":{"labels":{"app":"other"}}}}}`, types.MergePatchType, http.StatusUnprocessableEntity,
			"spec.selector: Invalid value"},
		{"labels that the selector does not match", `{"spec":{"template":{"metadata":{"labels":{"app":"other"}}}}}`, types.MergePatchType, http.StatusUnprocessableEntity,
			"`selector` does not match template `labels`"},
		{"no image", `{"spec":{"template":{"spec":{"containers":[{"name":"agent","image":null}]}}}}`, types.MergePatchType, http.StatusUnprocessableEntity,
			"spec.template.spec.containers[0].image: Required value"},
		{"an unknown kind of patch", `{}`, "application/unknown", http.StatusUnsupportedMediaType, "unknown format"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, _ := newServer(t)
			create(t, s, daemonSet("agent"))
			version := s.ResourceVersion()
			_, err := s.Patch("tester", daemonSetsGVR, "kube-system", "agent", c.kind, []byte(c.patch), "")
			status, ok := err.(apierrors.APIStatus)
			if !ok || status.Status().Code != c.code || !strings.Contains(status.Status().Message, c.message) {
				t.Errorf("got %v, want code %d and %q", err, c.code, c.message)
			}
			if s.ResourceVersion() != version {
				t.Error("something was written")
			}
		})
	}
}

func TestPodsKeepWhatTheyWereCreatedWith(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, patch string
		allowed     bool
	}{
		{"the image", `{"spec":{"containers":[{"name":"web","image":"example.com/web:2"}]}}`, true},
		{"one more toleration", `{"spec":{"tolerations":[{"key":"a","operator":"Exists"},{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}]}}`, true},
		{"no toleration", `{"spec":{"tolerations":[]}}`, false},
		{"the node", `{"spec":{"nodeName":"n2"}}`, false},
		{"one more container", `{"spec":{"containers":[{"name":"web","image":"example.com/web:1"},{"name":"b","image":"b:1"}]}}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, _ := newServer(t)
			boundPod(t, s, "web")
			_, err := s.Patch("tester", podsGVR, "default", "web", types.MergePatchType, []byte(c.patch), "")
			if (err == nil) != c.allowed || err != nil && !apierrors.IsInvalid(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestDefaultsThatOthersDependOn(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	d := create(t, s, daemonSet("agent"))
	if u := d.Spec.UpdateStrategy.RollingUpdate; d.Spec.UpdateStrategy.Type != appsv1.RollingUpdateDaemonSetStrategyType || u.MaxUnavailable.IntValue() != 1 || u.MaxSurge.IntValue() != 0 {
		t.Errorf("strategy %+v", d.Spec.UpdateStrategy)
	}
	if *d.Spec.RevisionHistoryLimit != 10 || *d.Spec.Template.Spec.TerminationGracePeriodSeconds != 30 {
		t.Error("revision history limit or grace period")
	}
	p := pod("web")
	p.Spec.PriorityClassName = "system-node-critical"
	p.Spec.Containers[0].Image = "registry.example.com:5000/web"
	p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{}
	p = create(t, s, p)
	c := p.Spec.Containers[0]
	if *p.Spec.Priority != 2_000_001_000 || p.Status.Phase != corev1.PodPending || p.Status.QOSClass != corev1.PodQOSBestEffort {
		t.Errorf("priority %d, phase %s, QoS %s", *p.Spec.Priority, p.Status.Phase, p.Status.QOSClass)
	}
	if c.ImagePullPolicy != corev1.PullAlways || c.ReadinessProbe.PeriodSeconds != 10 || c.ReadinessProbe.FailureThreshold != 3 {
		t.Errorf("pull policy %s, probe %+v", c.ImagePullPolicy, c.ReadinessProbe)
	}
	if len(p.Spec.Tolerations) != 2 || *p.Spec.Tolerations[0].TolerationSeconds != 300 {
		t.Errorf("tolerations %+v", p.Spec.Tolerations)
	}
	p = pod("other")
	p.Spec.PriorityClassName = "missing"
	if _, err := s.Create("tester", p); !apierrors.IsForbidden(err) {
		t.Errorf("a missing priority class: %v", err)
	}
	fresh := node("n1")
	fresh.Status.Conditions = nil
	if n := create(t, s, fresh); len(n.Spec.Taints) != 1 || n.Spec.Taints[0].Key != corev1.TaintNodeNotReady {
		t.Errorf("a node that is not ready: taints %v", n.Spec.Taints)
	}
	if n := create(t, s, node("n2")); len(n.Spec.Taints) != 0 {
		t.Errorf("a ready node: taints %v", n.Spec.Taints)
	}
}
