package e2e

import (
	"context"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rollcall-k8s/rollcall/e2e/controlplane"
	"github.com/rollcall-k8s/rollcall/e2e/kubelet"
	"github.com/rollcall-k8s/rollcall/internal/kube"
	facts "github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/action"
)

var (
	situations = flag.Int("situations", 50, "how many random situations the predictions of an undo are tried in")
	firstSeed  = flag.Uint64("first-seed", 1, "the seed of the first; the others follow")
)

// sideBySide is how many situations are played at a time.
const sideBySide = 8

// What an undo is predicted to do is what the DaemonSet controller then does, node
// by node: at once, which is while no kubelet moves, and in the end, when every
// kubelet that can be reached has done all that is due.
func TestPredictionsOfAnUndoComeTrue(t *testing.T) {
	t.Parallel()
	c := startCluster(t, controlplane.Options{Grace: 12 * time.Hour}, kubelet.Options{})
	conn, err := kube.New(c.Config(operator), kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	errs, stories := make([]error, *situations), make([][]string, *situations)
	disagreements := make([][]string, *situations)
	var compared statuses
	var running sync.WaitGroup
	turns := make(chan struct{}, sideBySide)
	for i := range *situations {
		running.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			seed := *firstSeed + uint64(i)
			ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
			began := time.Now()
			defer cancel()
			s, err := play(ctx, c.client, fmt.Sprintf("s%d", seed), seed)
			if err == nil {
				s.statuses = &compared
				err = s.undo(ctx, conn.API())
			}
			disagreements[i] = s.disagreements
			s.tell("took %s, %d syncs", time.Since(began).Round(time.Millisecond), s.syncs)
			errs[i], stories[i] = err, s.story
		})
	}
	running.Wait()
	for what, n := range compared.compared {
		t.Logf("%d times %s", n, what)
	}
	if *situations >= 50 {
		for kind, sign := range kinds {
			if !slices.ContainsFunc(stories, func(story []string) bool { return sign.MatchString(strings.Join(story, "\n")) }) {
				// What a drawn situation comes to depends on the controllers' timing too.
				t.Logf("no situation of the kind %q came about this time", kind)
			}
		}
	}
	t.Run("kubectl on Deployments and StatefulSets", c.comparesReplicas)
	for i, err := range errs {
		t.Run(fmt.Sprintf("seed %d", *firstSeed+uint64(i)), func(t *testing.T) {
			if err != nil {
				t.Errorf("%v\n%s", err, strings.Join(stories[i], "\n"))
			} else if len(disagreements[i]) > 0 {
				t.Errorf("kubectl and the report disagree:\n  %s\n%s", strings.Join(disagreements[i], "\n  "), strings.Join(stories[i], "\n"))
			} else if testing.Verbose() {
				t.Log(strings.Join(stories[i], "\n"))
			}
		})
	}
}

// kinds are what the situations must be of, taken together, or the test proves less
// than it says: by a text that the story or the prediction then has.
var kinds = map[string]*regexp.Regexp{
	"frozen":                             regexp.MustCompile(`frozen: nothing moves`),
	"in the middle":                      regexp.MustCompile(`(?s)(target true.*target false|target false.*target true).*PREDICTED`),
	"maxUnavailable as a number":         regexp.MustCompile(`(?m)^maxUnavailable \d$`),
	"maxUnavailable as a percentage":     regexp.MustCompile(`(?m)^maxUnavailable \d+%`),
	"maxSurge":                           regexp.MustCompile(`(?m)^maxSurge `),
	"minReadySeconds":                    regexp.MustCompile(`(?m)^minReadySeconds`),
	"old Pods that are not available":    regexp.MustCompile(`not available, replaced at once`),
	"NotReady, the kubelet lives":        regexp.MustCompile(`(?m)^ {4}s\d+-\d+ Ready=False`),
	"Unknown":                            regexp.MustCompile(`(?m)^ {4}s\d+-\d+ Ready=Unknown`),
	"no Pod, and one is made":            regexp.MustCompile(`has no Pod: one is made`),
	"no Pod, and none is made":           regexp.MustCompile(`has no Pod and gets none`),
	"not-ready is not tolerated":         regexp.MustCompile(`does not tolerate .*not-ready`),
	"an added taint":                     regexp.MustCompile(`does not tolerate .*maintenance`),
	"a toleration that the target lacks": regexp.MustCompile(`does not tolerate .*dedicated`),
	"a narrower target":                  regexp.MustCompile(`leaves this node out`),
	"removed at once":                    regexp.MustCompile(`removed at once, whatever the budget`),
	"waiting for ever":                   regexp.MustCompile(`waits? for ever`),
	"on the way out":                     regexp.MustCompile(`is on its way out`),
	"left alone":                         regexp.MustCompile(`untouched: [1-9]`),
}

// snapshot is all that the program would read of the situation, and every node.
func (s *situation) snapshot(ctx context.Context) (*facts.Snapshot, error) {
	var o facts.Objects
	nodes, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range nodes.Items {
		o.Nodes = append(o.Nodes, &nodes.Items[i])
	}
	pods, err := s.client.CoreV1().Pods(s.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		o.Pods = append(o.Pods, &pods.Items[i])
	}
	revisions, err := s.client.AppsV1().ControllerRevisions(s.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range revisions.Items {
		o.ControllerRevisions = append(o.ControllerRevisions, &revisions.Items[i])
	}
	ds, err := s.client.AppsV1().DaemonSets(s.name).Get(ctx, agentName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	o.DaemonSets = []*appsv1.DaemonSet{ds}
	return facts.New(o, facts.Meta{AsOf: time.Now(), PodScope: facts.PodScope{All: true}, Source: facts.Source{Type: "cluster", Version: "v1.37.2"}}), nil
}

// undo previews a rollback to revision 1, carries it out and compares.
func (s *situation) undo(ctx context.Context, api action.API) error {
	before, ds, err := s.settle(ctx, agentName)
	if err != nil {
		return fmt.Errorf("before the undo: %w", err)
	}
	snapshot, err := s.snapshot(ctx)
	if err != nil {
		return err
	}
	key := report.WorkloadKey{Kind: "DaemonSet", Namespace: report.Clean(s.name), Name: agentName}
	revisions := snapshot.RevisionsOf(ds.UID)
	target := revisions[len(revisions)-1]
	preview, err := action.Prepare(ctx, api, snapshot, action.Request{Kind: action.RollBack, Workload: key, ToRevision: target.Revision})
	if err != nil {
		return fmt.Errorf("preview: %w", err)
	}
	if preview.Blocked != "" {
		return fmt.Errorf("preview is blocked: %s", preview.Blocked)
	}
	s.compareStatus(ctx, "before the undo")
	s.tell("%s", describe(before, target.Labels[facts.RevisionHash]))
	p := read(preview.Prediction)
	s.tell("%s", p)
	if _, err := action.Apply(ctx, api, preview.Plan); err != nil {
		return fmt.Errorf("apply: %w", err)
	}
	atOnce, _, err := s.settle(ctx, agentName)
	if err != nil {
		return fmt.Errorf("after the undo: %w", err)
	}
	s.compareStatus(ctx, "at once after the undo")
	if err := s.finish(ctx); err != nil {
		return fmt.Errorf("until the undo is through: %w", err)
	}
	end, err := s.look(ctx)
	if err != nil {
		return err
	}
	s.compareStatus(ctx, "in the end")
	s.tell("AT ONCE %s", describe(atOnce, target.Labels[facts.RevisionHash]))
	s.tell("IN THE END %s", describe(end, target.Labels[facts.RevisionHash]))
	o := outcome{before: before, atOnce: atOnce, end: end, hash: target.Labels[facts.RevisionHash], rolling: ds.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType}
	if wrong := o.compare(p, s.nodes); len(wrong) > 0 {
		return fmt.Errorf("the prediction did not come true:\n  %s", strings.Join(wrong, "\n  "))
	}
	return nil
}

// compareStatus compares what is said of the rollout as it stands.
func (s *situation) compareStatus(ctx context.Context, when string) {
	snapshot, err := s.snapshot(ctx)
	if err != nil {
		s.disagreements = append(s.disagreements, err.Error())
		return
	}
	// The same object again as if it had just been changed.
	objects := snapshot.Objects
	changed := snapshot.DaemonSets[0].DeepCopy()
	changed.Generation++
	objects.DaemonSets = []*appsv1.DaemonSet{changed}
	for _, snapshot := range []*facts.Snapshot{snapshot, facts.New(objects, snapshot.Meta)} {
		for _, d := range s.statuses.compare(snapshot) {
			s.disagreements = append(s.disagreements, when+": "+d)
		}
	}
}

// describe is a picture in few words, node by node.
func describe(p *picture, hash string) string {
	var b strings.Builder
	names := make([]string, 0, len(p.nodes))
	for name := range p.nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		n := p.nodes[name]
		fmt.Fprintf(&b, "\n    %s Ready=%s", name, facts.NodeReadiness(n))
		for _, t := range n.Spec.Taints {
			fmt.Fprintf(&b, " %s", t.ToString())
		}
		fmt.Fprintf(&b, " pool=%s:", n.Labels["pool"])
		for _, pod := range p.pods {
			if facts.TargetNode(pod) != name {
				continue
			}
			fmt.Fprintf(&b, " %s[target %v, ready %v, ending %v]", pod.Name, pod.Labels[facts.RevisionHash] == hash, facts.PodReady(pod), pod.DeletionTimestamp != nil)
		}
	}
	return b.String()
}

// prediction is what a preview says, node by node.
type prediction struct {
	now, then, outOfReach, neverBack map[string]string // node, the rest of its line
	untouched                        int
	first                            atMost // of then: at once, in any order of nodes
	waiting                          atMost // of then: for ever
	text                             []string
}

// atMost is a number that is predicted exactly, or where chance decides only as the
// most that it can be.
type atMost struct {
	number  int
	orFewer bool
}

func (m atMost) allows(n int) bool { return n == m.number || m.orFewer && n < m.number }

func (m atMost) String() string {
	if m.orFewer {
		return fmt.Sprintf("at most %d", m.number)
	}
	return strconv.Itoa(m.number)
}

var (
	firstLine   = regexp.MustCompile(`^NOW (up to )?(\d+) Pods? (?:replaced|removed for good), in any order of nodes`)
	waitingLine = regexp.MustCompile(`^THEN (up to )?(\d+) Pods? (?:waits?|stays?) for (?:ever|good)`)
	mostLine    = regexp.MustCompile(`^THEN (at most) (\d+) Pods?, in any order of nodes`)
)

func read(p action.Prediction) prediction {
	byNode := func(lines []report.Text) map[string]string {
		m := map[string]string{}
		for _, l := range lines {
			node, rest, _ := strings.Cut(string(l), "  ")
			m[node] = rest
		}
		return m
	}
	out := prediction{now: byNode(p.Now), then: byNode(p.Then), outOfReach: byNode(p.OutOfReach), neverBack: byNode(p.NeverBack), untouched: p.Untouched}
	for _, l := range p.Summary {
		out.text = append(out.text, string(l))
		for re, r := range map[*regexp.Regexp]*atMost{firstLine: &out.first, waitingLine: &out.waiting, mostLine: &out.waiting} {
			if m := re.FindStringSubmatch(string(l)); m != nil {
				n, _ := strconv.Atoi(m[2])
				r.number += n
				r.orFewer = r.orFewer || m[1] != ""
			}
		}
	}
	for what, lines := range map[string][]report.Text{"now": p.Now, "then": p.Then, "out of reach": p.OutOfReach, "never back": p.NeverBack} {
		for _, l := range lines {
			out.text = append(out.text, what+": "+string(l))
		}
	}
	out.text = append(out.text, fmt.Sprintf("untouched: %d", p.Untouched))
	return out
}

func (p prediction) String() string { return "PREDICTED\n    " + strings.Join(p.text, "\n    ") }

// outcome is what the controller did.
type outcome struct {
	before, atOnce, end *picture
	hash                string // of the target's Pods
	rolling             bool
}

// compare lists what came out otherwise than predicted.
func (o outcome) compare(p prediction, nodes []string) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	untouched, first, waiting := 0, 0, 0
	for _, node := range nodes {
		live, ending := o.before.on(node)
		now, isNow := p.now[node]
		then, isThen := p.then[node]
		_, isOut := p.outOfReach[node]
		_, isNever := p.neverBack[node]
		touched, kept := o.touched(o.atOnce, node), !o.touched(o.end, node)
		reached := o.reached(node)
		switch {
		case isOut:
			// Whatever the controller asks for, nothing that was there is gone.
			for _, pod := range slices.Concat(live, ending) {
				if !has(o.end, pod.UID) {
					say("%s is out of reach, and its Pod %s is gone", node, pod.Name)
				}
			}
			if isNow || isThen {
				say("%s is out of reach and replaced at the same time", node)
			}
		case isNow && isThen:
			say("%s is replaced both now and then", node)
		case isNow && strings.Contains(now, "on its way out"):
			if !reached {
				say("%s gets no Pod of the target: %s", node, now)
			}
		case isNow:
			if !touched {
				say("%s is not touched at once: %s", node, now)
			}
			if !isNever && !reached {
				say("%s has no Pod of the target in the end: %s", node, now)
			}
		case isThen:
			// The Pod that waits is named; another one beside it may go at once.
			pod, _, _ := strings.Cut(strings.Fields(then)[0], ":")
			if touched = !isLive(o.atOnce, node, pod) || o.joined(o.atOnce, node); touched {
				first++
			}
			if kept = isLive(o.end, node, pod); kept {
				waiting++
			} else if !isNever && !reached {
				say("%s was replaced and has no Pod of the target in the end", node)
			}
			if touched && !o.rolling {
				say("%s is touched although the rollout is frozen", node)
			}
		case isNever:
			if liveEnd, _ := o.end.on(node); len(liveEnd) > 0 {
				say("%s was to stay without a Pod and has %s", node, liveEnd[0].Name)
			}
		case len(live) > 0:
			untouched++
			if touched || !kept {
				say("%s was to be left alone and is not", node)
			}
		default:
			if liveEnd, _ := o.end.on(node); len(liveEnd) > 0 {
				say("nothing was said of %s, and it has %s", node, liveEnd[0].Name)
			}
		}
		if liveEnd, _ := o.end.on(node); isNever && !isOut && len(liveEnd) > 0 && !(isThen && kept) {
			say("%s was to get no Pod back and has %s", node, liveEnd[0].Name)
		}
	}
	if untouched != p.untouched {
		say("%d nodes are left alone, predicted %d", untouched, p.untouched)
	}
	if o.rolling && !p.first.allows(first) {
		say("%d of those that wait for the budget are replaced at once, predicted %s", first, p.first)
	}
	if o.rolling && !p.waiting.allows(waiting) {
		say("%d wait for ever, predicted %s", waiting, p.waiting)
	}
	return wrong
}

// touched tells whether a Pod that was live on the node is not any more, or a new
// one is beside it.
func (o outcome) touched(in *picture, node string) bool {
	was, _ := o.before.on(node)
	is, _ := in.on(node)
	return len(was) != len(is) || o.joined(in, node)
}

// joined tells whether the node has a live Pod that it did not have before.
func (o outcome) joined(in *picture, node string) bool {
	is, _ := in.on(node)
	return slices.ContainsFunc(is, func(pod *corev1.Pod) bool { return !has(o.before, pod.UID) })
}

func isLive(in *picture, node, pod string) bool {
	live, _ := in.on(node)
	return slices.ContainsFunc(live, func(p *corev1.Pod) bool { return p.Name == pod })
}

// reached tells whether the node has one live Pod in the end, a Ready one of the target.
func (o outcome) reached(node string) bool {
	live, _ := o.end.on(node)
	return len(live) == 1 && live[0].Labels[facts.RevisionHash] == o.hash && facts.PodReady(live[0])
}

func has(p *picture, uid types.UID) bool {
	return slices.ContainsFunc(p.pods, func(pod *corev1.Pod) bool { return pod.UID == uid })
}
