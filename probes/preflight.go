package probes

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
	"github.com/rollcall-k8s/rollcall/probes/refusal"
	"github.com/rollcall-k8s/rollcall/probes/report"
)

// Change is what a preflight judges: a workload as it is, or what a manifest would
// make of it.
type Change struct {
	Target report.WorkloadKey
	// New is the manifest's object with its defaults filled in: a *appsv1.DaemonSet,
	// *appsv1.Deployment or *appsv1.StatefulSet. nil judges the live one.
	New any
	// Live is the live object verbatim, of the same types, to compare New with; nil
	// takes the snapshot's, of which values may have been hidden.
	Live any
	// Origin says where the manifest stands: "new.yaml:3".
	Origin report.Text
	// APIVersion is the manifest's, as written.
	APIVersion string
	// Strays are fields of the manifest that the kind does not have.
	Strays []report.Text
	// References are what was found out about them by asking, by Reference.Key.
	References map[string]Answer
	// DryRuns are the API server's answers to what would be sent.
	DryRuns []DryRun
	// FailOn is the severity from which on a finding fails the preflight.
	FailOn report.Severity
}

// DryRun is the API server's answer to one object that was sent with dryRun=All.
type DryRun struct {
	Kind     string      // DaemonSet, or Pod for one made of its template
	NotSent  report.Text // why it was not sent, or why the answer says nothing; "" where it does
	Refused  string      // the API server's words, "" where it accepts the object
	Warnings []string    // that it gave besides
}

// Preflight says of a change, before it is made, what it would break and what makes it
// risky. The report is about the one workload: its verdict is that of the cluster as
// it is, its findings are the workload's own and the risks. The error says that there is
// no such workload and no manifest that would make it.
func Preflight(s *cluster.Snapshot, ch Change) (*report.Report, error) {
	c := Diagnose(s, Options{All: true})
	p, err := c.plan(&ch)
	if err != nil {
		return nil, err
	}
	w := c.find(p.key)
	if w == nil {
		w = p.newcomer()
	}
	one := *w
	view := p.view(&ch)
	var risks []report.Finding
	for _, r := range p.risks(&ch, view) {
		risks = append(risks, p.finding(&r))
	}
	// What the preflight says of the change takes the place of the same said of now.
	one.Findings = slices.DeleteFunc(slices.Clone(one.Findings), func(f report.Finding) bool {
		return f.Code.IsRisk() || (f.Code == report.NoEligibleNodes || f.Code == report.SelectorOverlap) &&
			slices.ContainsFunc(risks, func(r report.Finding) bool { return r.Code == f.Code })
	})
	one.Findings = append(one.Findings, risks...)
	for i := range one.Owners {
		if o := &one.Owners[i]; o.Reconciles() && len(view.Canary) > 0 {
			view.Canary = slices.Insert(view.Canary, 0, report.Textf("%s owns it and puts changes by hand back: %s", o.Name(), orElse(o.Lever(), "make the change where it is owned")))
			break
		}
	}
	if p.isDaemonSet() {
		for _, b := range c.budgetsOver(p.meta.Namespace, p.template) {
			one.Findings = append(one.Findings, budgetFinding(b))
		}
		if !s.Read(cluster.PodDisruptionBudgets) {
			view.NotChecked = append(view.NotChecked, "whether a PodDisruptionBudget selects its Pods (none was read)")
		}
	}
	sortFindings(one.Findings)

	r := *c.Report
	r.ClusterFindings = slices.Concat(r.ClusterFindings, p.clusterFindings())
	sortFindings(r.ClusterFindings)
	r.Verdict = one.Verdict
	r.Verdict.Workload = report.Text(one.Key().String())
	view.Pass = !reaches(one.Findings, ch.FailOn) && !reaches(r.ClusterFindings, ch.FailOn) && r.Verdict.Attribution != report.Undetermined
	slices.Sort(view.NotChecked)
	one.Preflight = view
	p.recommend(&one)
	tidy(&one)
	r.Recommendation = one.Recommendation
	r.Workloads, r.Quiet = []report.Workload{one}, 0
	return &r, nil
}

func orElse(a, b report.Text) report.Text {
	if a != "" {
		return a
	}
	return b
}

func reaches(list []report.Finding, threshold report.Severity) bool {
	return slices.ContainsFunc(list, func(f report.Finding) bool { return f.Severity.Rank() >= threshold.Rank() })
}

// plan is the change as the rules see it.
func (c *Diagnosis) plan(ch *Change) (*planned, error) {
	if ch.New == nil {
		if p := c.livePlan(ch.Target); p != nil {
			return p, nil
		}
		return nil, fmt.Errorf("there is no %s %s/%s", ch.Target.Kind, ch.Target.Namespace, ch.Target.Name)
	}
	var p *planned
	switch o := ch.New.(type) {
	case *appsv1.DaemonSet:
		p = c.planDaemonSet(o, c.daemonSet(ch.Target))
	case *appsv1.Deployment:
		p = c.planDeployment(o, c.replicatedOf(ch.Target))
	case *appsv1.StatefulSet:
		p = c.planStatefulSet(o, c.replicatedOf(ch.Target))
	default:
		return nil, fmt.Errorf("a %T has no rollout", ch.New)
	}
	switch o := ch.Live.(type) {
	case *appsv1.DaemonSet:
		p.before = &o.Spec.Template
	case *appsv1.Deployment:
		p.before = &o.Spec.Template
	case *appsv1.StatefulSet:
		p.before = &o.Spec.Template
	}
	return p, nil
}

// livePlan is the workload as it is, nil where it is not in the picture.
func (c *Diagnosis) livePlan(k report.WorkloadKey) *planned {
	if d := c.daemonSet(k); d != nil {
		return c.planDaemonSet(d.ds, d)
	}
	r := c.replicatedOf(k)
	if r == nil {
		return nil
	}
	for _, d := range c.s.Deployments {
		if k.Kind == "Deployment" && d.UID == r.uid {
			return c.planDeployment(d, r)
		}
	}
	for _, s := range c.s.StatefulSets {
		if k.Kind == "StatefulSet" && s.UID == r.uid {
			return c.planStatefulSet(s, r)
		}
	}
	return nil
}

// newcomer is the entry of a workload that does not exist yet.
func (p *planned) newcomer() *report.Workload {
	return &report.Workload{Kind: p.key.Kind, Namespace: p.key.Namespace, Name: p.key.Name,
		Rollout: report.Rollout{State: report.NotObserved, MaxUnavailable: p.maxUnavailable, MaxUnavailableResolved: p.unavailable, MaxSurge: p.maxSurge,
			MaxSurgeResolved: p.surge, MinReadySeconds: int(p.minReady.Seconds()), Strategy: p.strategy(), Critical: criticality(p.template)},
		Verdict:        report.Verdict{Attribution: report.Healthy, Confidence: report.High, Summary: "it does not exist yet"},
		Recommendation: report.Recommendation{Action: report.ActionNone}}
}

func (p *planned) strategy() report.Text {
	switch {
	case p.recreate:
		return "Recreate"
	case !p.rolling && p.key.Kind != "Deployment":
		return "OnDelete"
	}
	return "RollingUpdate"
}

// risks are all that the rules find, in the order of the rules.
func (p *planned) risks(ch *Change, view *report.Preflight) []risk {
	out := p.refused()
	if v := ch.APIVersion; ch.New != nil && v != appsv1.SchemeGroupVersion.String() {
		out = append(out, *breaks(report.AdmissionDenied, report.Textf("the API server would refuse it: %s is served as apps/v1 alone, not as %s", p.key.Kind, orDash(report.Clean(v))),
			report.Evidence{Source: ch.Origin, Value: report.Textf("apiVersion %s", orDash(report.Clean(v)))}))
	}
	out = append(out, p.dryRunRisks(ch, view)...)
	if len(ch.Strays) > 0 {
		r := warning(report.AdmissionDenied, report.Textf("%s that a %s does not have: the API server drops or refuses them", count(len(ch.Strays), "field"), p.key.Kind))
		for _, f := range ch.Strays {
			r.evidence = append(r.evidence, report.Evidence{Source: ch.Origin, Value: f})
		}
		out = append(out, *r)
	}
	out = append(out, p.coverageRisks()...)
	out = append(out, p.firstSync()...)
	missing, unknown := p.referenceRisks(ch.References)
	out, view.NotChecked = append(out, missing...), append(view.NotChecked, unknown...)
	out = append(out, p.settingRisks()...)
	for _, f := range []rule{(*planned).insufficientHeadroom, (*planned).portsTaken, (*planned).selectorOverlap, (*planned).updateTakesLong} {
		if r := f(p); r != nil {
			out = append(out, *r)
		}
	}
	return out
}

// dryRunRisks are the API server's refusals.
func (p *planned) dryRunRisks(ch *Change, view *report.Preflight) []risk {
	var out []risk
	for _, d := range ch.DryRuns {
		line := report.Textf("%s: accepted", d.Kind)
		switch {
		case d.NotSent != "":
			line = report.Textf("%s: not known: %s", d.Kind, d.NotSent)
		case d.Refused != "":
			words := report.Text(firstWords(d.Refused, 300))
			line = report.Textf("%s: refused: %s", d.Kind, words)
			why, _ := refusal.ParseCreation(d.Refused)
			code := why.Code
			if code == "" {
				code = report.AdmissionDenied
			}
			r := breaks(code, report.Textf("the API server refuses the %s: %s", d.Kind, words), report.Evidence{Source: report.Textf("dry run of the %s", d.Kind), Value: words})
			if code == report.QuotaExceeded && p.uid != "" && p.surge == 0 && d.Kind == "Pod" && len(p.pods()) > 0 {
				r.severity = report.Warning
				r.summary += report.Text("; while the rollout goes on, each old Pod gives its share back first")
			}
			out = append(out, *r)
		}
		view.DryRun = append(view.DryRun, line)
		for _, text := range d.Warnings {
			words := report.Text(firstWords(text, 300))
			view.DryRun = append(view.DryRun, report.Textf("%s: warning: %s", d.Kind, words))
			if strings.Contains(text, "would violate PodSecurity") {
				out = append(out, *breaks(report.PodSecurityViolation, report.Textf("its Pods violate the namespace's PodSecurity level: %s", words), report.Evidence{Source: report.Textf("dry run of the %s", d.Kind), Value: words}))
			}
		}
	}
	return out
}

// view is what there is to say besides findings.
func (p *planned) view(ch *Change) *report.Preflight {
	v := &report.Preflight{FailOn: ch.FailOn, Template: "live", New: p.uid == "", Nodes: p.desired(), QoSClass: report.Clean(string(qosClass(&p.template.Spec))),
		Guard: p.guard(), Changes: []report.Text{}, DryRun: []report.Text{}, Canary: []report.Text{}, NotChecked: []report.Text{}}
	if ch.New != nil {
		v.Template = ch.Origin
		if p.before != nil {
			v.Changes = append(v.Changes, templateDiff(p.before, p.template)...)
		}
	}
	if !p.isDaemonSet() {
		v.Nodes = p.replicas
	}
	if !p.c.s.Read(cluster.Nodes) {
		v.NotChecked = append(v.NotChecked, "which nodes would run it, and whether there is room (nodes were not read)")
	}
	if p.d != nil && !p.d.podsKnown {
		v.NotChecked = append(v.NotChecked, "which Pods it has now (they were not read)")
	}
	change := p.coverage()
	v.Gained, v.Lost = cleaned(change.gained), change.lost()
	request := p.requests()
	total := corev1.ResourceList{}
	for name, q := range request {
		total[name] = timesOver(q, v.Nodes)
	}
	v.Requests, v.TotalRequests = report.Clean(resourceText(request)), report.Clean(resourceText(total))
	if x, ok := p.pace(); ok {
		v.AtOnce, v.TimePerPod, v.Duration = x.batch, report.Clean(short(x.per)), report.Clean(short(x.total))
		v.TimeSource = "as much as its settings allow"
		if x.observed > 0 {
			v.TimeSource = report.Textf("median of %s that it has now", count(x.observed, "Pod"))
		}
	}
	if p.isDaemonSet() {
		v.Canary = append(v.Canary, p.canaryPlan()...)
	}
	return v
}

// canaryPlan is how to begin on one node, with the trap on the way.
func (p *planned) canaryPlan() []report.Text {
	if len(p.nodes) < 2 {
		return nil
	}
	first, pools := p.canaryNode()
	wait := short(max(p.c.soak(), p.minReady))
	out := []report.Text{
		report.Textf("kubectl patch daemonset %s -n %s --type=merge -p '{\"spec\":{\"updateStrategy\":{\"type\":\"OnDelete\"}}}'", report.Word(string(p.key.Name)), report.Word(string(p.key.Namespace))),
		"apply the new template, with updateStrategy OnDelete in the manifest too: it replaces nothing by itself",
		report.Textf("kubectl delete pod -n %s -l %s --field-selector spec.nodeName=%s", report.Word(string(p.key.Namespace)), report.Word(metav1.FormatLabelSelector(p.selector)), report.Word(first)),
		report.Textf("wait %s: its node Ready, its Pod Ready, what runs there well", wait),
	}
	if p.uid == "" {
		out = []report.Text{
			"create it with updateStrategy OnDelete and a nodeSelector for one pool: it has no Pods elsewhere yet that could be lost",
			report.Textf("wait %s: its nodes Ready, its Pods Ready, what runs there well", wait),
		}
	}
	next := "then one pool at a time, control-plane nodes last"
	if len(pools) > 1 {
		next = fmt.Sprintf("then one pool at a time (%s), control-plane nodes last", names(pools, 5))
	}
	out = append(out, report.Clean(next))
	if p.uid != "" {
		out = append(out, "never narrow its nodeSelector for a canary: every node outside would lose its Pod at once, whatever the budget; a second DaemonSet for the canary pool is the other way")
	}
	return out
}

// canaryNode is the node to begin on, a Ready worker of the smallest pool, and the
// pools in their order.
func (p *planned) canaryNode() (first string, pools []string) {
	size := map[string]int{}
	for _, n := range p.nodes {
		size[poolOf(n)]++
	}
	for name := range size {
		if name != "" {
			pools = append(pools, name)
		}
	}
	slices.SortFunc(pools, func(a, b string) int {
		if d := size[a] - size[b]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	best := func(n *corev1.Node) (bad, weight int) {
		if !cluster.NodeReady(n) || n.Spec.Unschedulable {
			bad += 2
		}
		if controlPlane(n) {
			bad++
		}
		return bad, size[poolOf(n)]
	}
	chosen := slices.MinFunc(p.nodes, func(a, b *corev1.Node) int {
		x, i := best(a)
		y, j := best(b)
		switch {
		case x != y:
			return x - y
		case i != j:
			return i - j
		}
		return strings.Compare(a.Name, b.Name)
	})
	return chosen.Name, pools
}

// poolOf is the pool that a node's labels name, "" where none does.
func poolOf(n *corev1.Node) string {
	for _, l := range poolLabels {
		if v := n.Labels[l]; v != "" && !strings.HasSuffix(l, "rack") {
			return v
		}
	}
	return ""
}

// recommend says what to do where the preflight does not pass.
func (p *planned) recommend(w *report.Workload) {
	if w.Preflight.Pass || w.Recommendation.Action != report.ActionNone && w.Recommendation.Action != "" {
		return
	}
	r := &w.Recommendation
	r.Action, r.Why = report.ActionFixWorkload, "mend what the preflight found before it is rolled out"
	for _, f := range w.Findings {
		if f.Severity == report.Critical {
			r.Why = report.Textf("before it is rolled out: %s", f.Summary)
			return
		}
	}
}
