package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// next reads one event as "TYPE name version".
func next(t *testing.T, w watch.Interface) string {
	t.Helper()
	e, ok := <-w.ResultChan()
	if !ok {
		t.Fatal("the watch ended")
	}
	if e.Type == watch.Error {
		return fmt.Sprintf("ERROR %v", apierrors.FromObject(e.Object))
	}
	o := e.Object.(object)
	text := fmt.Sprintf("%s %s %s", e.Type, o.GetName(), o.GetResourceVersion())
	if o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		text += " initial-events-end"
	}
	return text
}

func expect(t *testing.T, w watch.Interface, want ...string) {
	t.Helper()
	for _, text := range want {
		if got := next(t, w); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
}

func startPodWatch(t *testing.T, c kubernetes.Interface, opts metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := c.CoreV1().Pods("").Watch(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

func setLabels(t *testing.T, s *Server, name string, labels map[string]string) string {
	t.Helper()
	p := get[*corev1.Pod](t, s, "default", name).DeepCopy()
	p.Labels = labels
	o, err := s.Update("tester", p)
	if err != nil {
		t.Fatal(err)
	}
	return o.(*corev1.Pod).ResourceVersion
}

func TestWatchesFollowTheirSelection(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	for encoding, c := range clientsFor(t, s) {
		name := strings.ToLower(encoding)
		w := startPodWatch(t, c, metav1.ListOptions{LabelSelector: "app=web", FieldSelector: "metadata.name=" + name, ResourceVersion: s.ResourceVersion()})
		created := create(t, s, pod(name)).ResourceVersion
		create(t, s, pod(name+"-other"))
		changed := setLabels(t, s, name, map[string]string{"app": "web", "x": "y"})
		left := setLabels(t, s, name, map[string]string{"app": "db"})
		setLabels(t, s, name, map[string]string{"app": "db", "x": "z"})
		back := setLabels(t, s, name, map[string]string{"app": "web"})
		if err := s.Delete(podsGVR, "default", name, nil); err != nil {
			t.Fatal(err)
		}
		expect(t, w, "ADDED "+name+" "+created, "MODIFIED "+name+" "+changed, "DELETED "+name+" "+left, "ADDED "+name+" "+back,
			"DELETED "+name+" "+s.ResourceVersion())
	}
}

func TestWhatLeavesASelectionIsShownAsItWas(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	create(t, s, pod("web"))
	w := startPodWatch(t, client(t, s.Config()), metav1.ListOptions{LabelSelector: "app=web", ResourceVersion: s.ResourceVersion()})
	setLabels(t, s, "web", map[string]string{"app": "db"})
	if e := <-w.ResultChan(); e.Type != watch.Deleted || e.Object.(*corev1.Pod).Labels["app"] != "web" {
		t.Errorf("%s %v", e.Type, e.Object.(*corev1.Pod).Labels)
	}
}

func TestWhereAWatchBegins(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	a := create(t, s, pod("a")).ResourceVersion
	b := create(t, s, pod("b")).ResourceVersion
	c := client(t, s.Config())
	yes, no := true, false
	t.Run("after a version", func(t *testing.T) {
		expect(t, startPodWatch(t, c, metav1.ListOptions{ResourceVersion: a}), "ADDED b "+b)
	})
	t.Run("with what there is", func(t *testing.T) {
		expect(t, startPodWatch(t, c, metav1.ListOptions{}), "ADDED a "+a, "ADDED b "+b)
		expect(t, startPodWatch(t, c, metav1.ListOptions{ResourceVersion: "0"}), "ADDED a "+a, "ADDED b "+b)
	})
	t.Run("with what there is and a mark", func(t *testing.T) {
		w := startPodWatch(t, c, metav1.ListOptions{SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
		expect(t, w, "ADDED a "+a, "ADDED b "+b, "BOOKMARK  "+b+" initial-events-end")
	})
	t.Run("with nothing but what comes", func(t *testing.T) {
		w := startPodWatch(t, c, metav1.ListOptions{SendInitialEvents: &no, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
		expect(t, w, "BOOKMARK  "+s.Bookmark())
	})
	t.Run("a single object", func(t *testing.T) {
		answer := raw(t, s, "GET", "/api/v1/namespaces/default/pods/b?watch=true&timeoutSeconds=600", "", nil)
		var e metav1.WatchEvent
		if err := json.NewDecoder(answer.Body).Decode(&e); err != nil || e.Type != "ADDED" || !strings.Contains(string(e.Object.Raw), `"name":"b"`) {
			t.Errorf("%s %s, %v", e.Type, e.Object.Raw, err)
		}
	})
	t.Run("too long ago", func(t *testing.T) {
		s.Compact()
		w := startPodWatch(t, c, metav1.ListOptions{ResourceVersion: a})
		e := <-w.ResultChan()
		if status, ok := e.Object.(*metav1.Status); !ok || status.Code != 410 || status.Reason != metav1.StatusReasonExpired {
			t.Errorf("%s %v", e.Type, e.Object)
		}
	})
	t.Run("at no version", func(t *testing.T) {
		if _, err := c.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: "x"}); !apierrors.IsBadRequest(err) {
			t.Errorf("%v", err)
		}
	})
}

func TestBookmarksComeAfterEverythingBeforeThem(t *testing.T) {
	t.Parallel()
	s, _ := newServer(t)
	c := client(t, s.Config())
	with := startPodWatch(t, c, metav1.ListOptions{ResourceVersion: s.ResourceVersion(), AllowWatchBookmarks: true})
	without := startPodWatch(t, c, metav1.ListOptions{ResourceVersion: s.ResourceVersion()})
	create(t, s, node("n1")) // another kind moves the version too
	a := create(t, s, pod("a")).ResourceVersion
	create(t, s, node("n2"))
	first, second := s.Bookmark(), s.Bookmark()
	b := create(t, s, pod("b")).ResourceVersion
	if first != second || first == a {
		t.Errorf("bookmarks at %s and %s, the Pod at %s", first, second, a)
	}
	expect(t, with, "ADDED a "+a, "BOOKMARK  "+first, "BOOKMARK  "+first, "ADDED b "+b)
	expect(t, without, "ADDED a "+a, "ADDED b "+b)
}

func TestAWatchThatFallsTooFarBehindEndsWith410(t *testing.T) {
	t.Parallel()
	c := newCollection(resourceNamed(podsGVR))
	cursor := c.end()
	for i := range 2*historyLength + 1 {
		c.put("default/web", pod("web"), uint64(i+1))
	}
	if _, err := c.from(cursor); !apierrors.IsResourceExpired(err) {
		t.Errorf("got %v", err)
	}
	changes, err := c.from(c.forgotten)
	if err != nil || changes[0].revision != c.oldest+1 || changes[len(changes)-1].revision != 2*historyLength+1 {
		t.Errorf("what is left starts at %d after %d: %v", changes[0].revision, c.oldest, err)
	}
}

func TestWatchesEndWhenTheirTimeIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := New(time.Now, 1)
		defer s.Close()
		w, err := client(t, s.Config()).CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{ResourceVersion: s.ResourceVersion(), TimeoutSeconds: ptr[int64](300)})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for e := range w.ResultChan() {
			t.Errorf("%s", e.Type)
		}
		if d := time.Since(start); d != 5*time.Minute {
			t.Errorf("after %v", d)
		}
	})
}

// TestInformersFollowTheServer runs real informers through writes, a restart of the connection and a compaction.
func TestInformersFollowTheServer(t *testing.T) {
	t.Parallel()
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		t.Run(contentType, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := New(time.Now, 1)
				defer s.Close()
				config := s.Config()
				config.ContentType = contentType
				ctx, cancel := context.WithCancel(t.Context())
				factory := informers.NewSharedInformerFactory(client(t, config), 0)
				pods, sets := factory.Core().V1().Pods(), factory.Apps().V1().DaemonSets()
				podInformer, setInformer := pods.Informer(), sets.Informer()
				defer factory.Shutdown()
				defer cancel()
				create(t, s, pod("early"))
				factory.Start(ctx.Done())
				if !cache.WaitForCacheSync(ctx.Done(), podInformer.HasSynced, setInformer.HasSynced) {
					t.Fatal("no sync")
				}
				check := func(want string) {
					t.Helper()
					synctest.Wait()
					var seen []string
					seen = append(seen, podInformer.GetStore().ListKeys()...)
					if got := len(seen); fmt.Sprint(got) != want {
						t.Errorf("informer holds %v, want %s", seen, want)
					}
				}
				check("1")
				create(t, s, pod("late"))
				create(t, s, daemonSet("agent"))
				check("2")
				if d, err := sets.Lister().DaemonSets("kube-system").Get("agent"); err != nil || *d.Spec.RevisionHistoryLimit != 10 {
					t.Errorf("%v", err)
				}
				version := s.Bookmark()
				synctest.Wait()
				if podInformer.LastSyncResourceVersion() != version || setInformer.LastSyncResourceVersion() != version {
					t.Errorf("after the bookmark at %s the informers are at %s and %s", version, podInformer.LastSyncResourceVersion(), setInformer.LastSyncResourceVersion())
				}
				s.Disconnect()
				create(t, s, pod("meanwhile"))
				s.Compact()
				time.Sleep(2 * time.Minute) // virtual: the reflectors back off and list again
				check("3")
				if err := s.Delete(podsGVR, "default", "late", nil); err != nil {
					t.Fatal(err)
				}
				check("2")
			})
		})
	}
}
