package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

func TestTheSameSeedGivesTheSameNamesAndUIDs(t *testing.T) {
	t.Parallel()
	run := func(seed int64) string {
		s := New((&virtual{}).now, seed)
		var out []string
		for range 3 {
			p := pod("")
			p.GenerateName = "web-"
			stored := create(t, s, p)
			out = append(out, stored.Name, string(stored.UID), stored.ResourceVersion)
			// A dry run must not move the names of what follows.
			if _, err := s.create(resourceNamed(podsGVR), p.DeepCopy(), write{dryRun: true}); err != nil {
				t.Fatal(err)
			}
		}
		return strings.Join(out, " ")
	}
	first := run(7)
	if again := run(7); again != first {
		t.Errorf("two runs of seed 7 differ:\n%s\n%s", first, again)
	}
	if other := run(8); other == first {
		t.Errorf("seeds 7 and 8 give the same names: %s", first)
	}
	for _, suffix := range []string{strings.Fields(first)[0], strings.Fields(first)[3]} {
		if len(suffix) != len("web-")+5 || strings.Trim(suffix[4:], suffixAlphabet) != "" {
			t.Errorf("generated name %q has no suffix of five characters of Kubernetes' alphabet", suffix)
		}
	}
}

func TestCreateSetsWhatTheSystemOwns(t *testing.T) {
	t.Parallel()
	s, clock := newServer(t)
	clock.advance(90*time.Second + 400*time.Millisecond)
	ds := daemonSet("agent")
	ds.Status.NumberReady = 5
	ds.Generation, ds.UID = 9, "mine"
	ds.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "7"}
	stored := create(t, s, ds)
	if stored.Generation != 1 || stored.Annotations[appsv1.DeprecatedTemplateGeneration] != "1" {
		t.Errorf("generation %d, template generation %s: want 1 and 1", stored.Generation, stored.Annotations[appsv1.DeprecatedTemplateGeneration])
	}
	if stored.Status.NumberReady != 0 {
		t.Error("a status was kept at creation")
	}
	if stored.UID == "mine" || stored.UID == "" {
		t.Errorf("uid = %q", stored.UID)
	}
	if want := epoch.Add(90 * time.Second); !stored.CreationTimestamp.Time.Equal(want) {
		t.Errorf("creationTimestamp = %v, want the virtual clock to the second, %v", stored.CreationTimestamp, want)
	}
	if stored.ResourceVersion != s.ResourceVersion() {
		t.Errorf("resourceVersion = %s, newest is %s", stored.ResourceVersion, s.ResourceVersion())
	}
	if ds.ResourceVersion != "" || ds.Generation != 9 {
		t.Error("the caller's object was changed")
	}
	if _, err := s.Create("tester", daemonSet("agent")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("creating it again: %v", err)
	}
}

func TestGenerationCountsChangesOfTheSpecOnly(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	create(t, s, daemonSet("agent"))
	steps := []struct {
		name               string
		change             func(*appsv1.DaemonSet)
		status             bool
		generation         int64
		templateGeneration string
		minReady, ready    int32
	}{
		{"a label", func(d *appsv1.DaemonSet) { d.Labels = map[string]string{"a": "b"} }, false, 1, "1", 0, 0},
		{"the status", func(d *appsv1.DaemonSet) { d.Status.NumberReady = 3 }, true, 1, "1", 0, 3},
		{"the strategy", func(d *appsv1.DaemonSet) { d.Spec.MinReadySeconds = 5 }, false, 2, "1", 5, 3},
		{"the template", func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Containers[0].Image = "example.com/agent:2" }, false, 3, "2", 5, 3},
		{"the template generation by hand", func(d *appsv1.DaemonSet) { d.Annotations[appsv1.DeprecatedTemplateGeneration] = "99" }, false, 3, "2", 5, 3},
		{"the spec through the status", func(d *appsv1.DaemonSet) { d.Spec.MinReadySeconds = 77; d.Status.NumberReady = 4 }, true, 3, "2", 5, 4},
		{"the status beside the spec", func(d *appsv1.DaemonSet) { d.Spec.MinReadySeconds = 6; d.Status.NumberReady = 100 }, false, 4, "2", 6, 4},
	}
	for _, step := range steps {
		d := get[*appsv1.DaemonSet](t, s, "kube-system", "agent").DeepCopy()
		step.change(d)
		var err error
		if step.status {
			_, err = s.UpdateStatus("tester", d)
		} else {
			_, err = s.Update("tester", d)
		}
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		now := get[*appsv1.DaemonSet](t, s, "kube-system", "agent")
		if now.Generation != step.generation || now.Annotations[appsv1.DeprecatedTemplateGeneration] != step.templateGeneration {
			t.Errorf("after changing %s: generation %d, template generation %s; want %d, %s", step.name, now.Generation,
				now.Annotations[appsv1.DeprecatedTemplateGeneration], step.generation, step.templateGeneration)
		}
		if now.Spec.MinReadySeconds != step.minReady || now.Status.NumberReady != step.ready {
			t.Errorf("after changing %s: minReadySeconds %d, ready %d; want %d, %d", step.name, now.Spec.MinReadySeconds, now.Status.NumberReady, step.minReady, step.ready)
		}
	}
}

func TestStaleWritesConflictAndUnchangedOnesAreNoWrites(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	first := create(t, s, node("n1"))
	changed := first.DeepCopy()
	changed.Labels = map[string]string{"zone": "a"}
	if _, err := s.Update("tester", changed); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update("tester", first.DeepCopy()); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "please apply your changes to the latest version") {
		t.Errorf("a stale update: %v", err)
	}
	before := s.ResourceVersion()
	same := get[*corev1.Node](t, s, "", "n1").DeepCopy()
	stored, err := s.Update("another", same)
	if err != nil || s.ResourceVersion() != before || stored.(*corev1.Node).ResourceVersion != same.ResourceVersion {
		t.Errorf("an unchanged update moved the version from %s to %s (%v)", before, s.ResourceVersion(), err)
	}
	unconditional := node("n1")
	if _, err := s.Update("tester", unconditional); err != nil {
		t.Errorf("an update without a version: %v", err)
	}
	replaced := get[*corev1.Node](t, s, "", "n1").DeepCopy()
	replaced.UID = "of-another-node"
	if _, err := s.Update("tester", replaced); !apierrors.IsConflict(err) {
		t.Errorf("an update of another UID: %v", err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n1", Namespace: "kube-node-lease"}}
	create(t, s, lease)
	if _, err := s.Update("tester", lease); !apierrors.IsInvalid(err) {
		t.Errorf("a Lease updated without a version: %v", err)
	}
}

func TestListsAreSortedAndSelected(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	for _, name := range []string{"c", "a", "b"} {
		create(t, s, pod(name))
	}
	other := pod("d")
	other.Namespace, other.Labels = "kube-system", map[string]string{"app": "dns"}
	create(t, s, other)
	if got := names(ListOf[*corev1.Pod](s, "default", nil)); got != "[a b c]" {
		t.Errorf("default: %s", got)
	}
	if got := names(ListOf[*corev1.Pod](s, "", labels.SelectorFromSet(labels.Set{"app": "dns"}))); got != "[d]" {
		t.Errorf("app=dns: %s", got)
	}
	if got := len(s.List(podsGVR, "", nil)); got != 4 {
		t.Errorf("all: %d", got)
	}
}

func TestReturnedObjectsAreNeverChanged(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	before := create(t, s, daemonSet("agent"))
	copied := before.DeepCopy()
	_, err := s.Patch("tester", daemonSetsGVR, "kube-system", "agent", types.MergePatchType, []byte(`{"spec":{"minReadySeconds":3},"metadata":{"labels":{"x":"y"}}}`), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(daemonSetsGVR, "kube-system", "agent", nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(copied, before); diff != "" {
		t.Errorf("an object handed out earlier changed:\n%s", diff)
	}
}

func TestManagedFieldsSayWhoChangedWhatAndWhen(t *testing.T) {
	t.Parallel()
	s, clock := newServer(t)
	if _, err := s.Create("kubectl-create", daemonSet("agent")); err != nil {
		t.Fatal(err)
	}
	setImage := func(manager, image string) {
		t.Helper()
		clock.advance(time.Minute)
		patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"agent","image":"` + image + `"}]}}}}`)
		if _, err := s.Patch(manager, daemonSetsGVR, "kube-system", "agent", types.StrategicMergePatchType, patch, ""); err != nil {
			t.Fatal(err)
		}
	}
	setImage("kubectl-set", "example.com/agent:2")
	d := get[*appsv1.DaemonSet](t, s, "kube-system", "agent").DeepCopy()
	d.Status.NumberReady = 1
	clock.advance(time.Minute)
	if _, err := s.UpdateStatus("kube-controller-manager", d); err != nil {
		t.Fatal(err)
	}

	imagePath := []string{"f:spec", "f:template", "f:spec", "f:containers", `k:{"name":"agent"}`, "f:image"}
	check := func(manager, subresource string, at time.Duration, path []string, owned bool) {
		t.Helper()
		for _, e := range get[*appsv1.DaemonSet](t, s, "kube-system", "agent").ManagedFields {
			if e.Manager != manager || e.Subresource != subresource {
				continue
			}
			if e.Operation != metav1.ManagedFieldsOperationUpdate || e.APIVersion != "apps/v1" || !e.Time.Time.Equal(epoch.Add(at)) {
				t.Errorf("%s: %s %s at %v, want Update apps/v1 at %v", manager, e.Operation, e.APIVersion, e.Time, epoch.Add(at))
			}
			if owns(t, e, path) != owned {
				t.Errorf("%s owns %v: %v, want %v", manager, path, !owned, owned)
			}
			return
		}
		t.Errorf("no entry for %s %s", manager, subresource)
	}
	check("kubectl-create", "", 0, imagePath, false)
	check("kubectl-create", "", 0, []string{"f:spec", "f:selector"}, true)
	check("kubectl-set", "", time.Minute, imagePath, true)
	check("kube-controller-manager", "status", 2*time.Minute, []string{"f:status", "f:numberReady"}, true)

	setImage("kubectl-set", "example.com/agent:3") // an owned value changes: the time is refreshed
	check("kubectl-set", "", 3*time.Minute, imagePath, true)
	check("kubectl-create", "", 0, []string{"f:spec", "f:selector"}, true)

	setImage("argocd-controller", "example.com/agent:1") // another takes the field: the old entry goes
	check("argocd-controller", "", 4*time.Minute, imagePath, true)
	for _, e := range get[*appsv1.DaemonSet](t, s, "kube-system", "agent").ManagedFields {
		if e.Manager == "kubectl-set" {
			t.Errorf("kubectl-set owns nothing and is still listed: %v", e)
		}
	}
}

func owns(t *testing.T, e metav1.ManagedFieldsEntry, path []string) bool {
	t.Helper()
	var at any
	if err := json.Unmarshal(e.FieldsV1.GetRawBytes(), &at); err != nil {
		t.Fatal(err)
	}
	for _, step := range path {
		m, ok := at.(map[string]any)
		if !ok {
			return false
		}
		if at, ok = m[step]; !ok {
			return false
		}
	}
	return true
}

func TestEventsLiveForAnHourAfterTheirLastWrite(t *testing.T) {
	t.Parallel()
	s, clock := newServer(t)
	create(t, s, event("one", "BackOff"))
	two := create(t, s, event("two", "BackOff"))
	clock.advance(50 * time.Minute)
	two = two.DeepCopy()
	two.Count = 2
	if _, err := s.Update("kubelet", two); err != nil {
		t.Fatal(err)
	}
	clock.advance(10 * time.Minute)
	if got := names(ListOf[*corev1.Event](s, "default", nil)); got != "[two]" {
		t.Errorf("after an hour: %s", got)
	}
	clock.advance(50 * time.Minute)
	if _, err := s.Get(eventsGVR, "default", "two"); !apierrors.IsNotFound(err) {
		t.Errorf("an hour after its update: %v", err)
	}
}

func TestWritesIntoMissingNamespacesAreRefused(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	p := pod("a")
	p.Namespace = "nowhere"
	if _, err := s.Create("tester", p); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `namespaces "nowhere" not found`) {
		t.Errorf("got %v", err)
	}
	if err := s.Delete(corev1.SchemeGroupVersion.WithResource("namespaces"), "", "kube-system", nil); !apierrors.IsForbidden(err) {
		t.Errorf("kube-system was deleted: %v", err)
	}
}

func BenchmarkUpdatePodStatus(b *testing.B) {
	s, clock := newServer(b)
	p := boundPod(b, s, "web")
	for i := 0; b.Loop(); i++ {
		clock.advance(time.Second)
		p = p.DeepCopy()
		p.Status.Message = time.Duration(i).String()
		o, err := s.UpdateStatus("kubelet", p)
		if err != nil {
			b.Fatal(err)
		}
		p = o.(*corev1.Pod)
	}
}
