package capture

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// Redactor replaces what may be secret by digests under a key that is drawn for one
// capture and never stored: a value that changed between two revisions still
// differs, an equal one is still equal, and nobody can try out guesses. What it
// does to an object depends on that object alone, and different texts stay
// different, so two Pod templates are equal after it exactly where they were before.
// It is for one goroutine.
type Redactor struct {
	key     []byte
	keepEnv bool
	// What arguments and texts became: the Pods of a workload repeat them.
	arguments, texts memo
}

// memo remembers what strings became, and forgets it all when it is full.
type memo map[string]string

const (
	maxMemo   = 4096 // strings
	maxRecall = 4096 // bytes of one
)

func (m memo) of(s string, f func(string) string) string {
	out, known := m[s]
	if known {
		return out
	}
	out = f(s)
	if len(s) <= maxRecall {
		if len(m) >= maxMemo {
			clear(m)
		}
		m[s] = out
	}
	return out
}

// NewRedactor draws the key. keepEnv keeps the values of environment variables and
// HTTP headers, arguments that look secret and the attributes of volumes.
func NewRedactor(keepEnv bool) (*Redactor, error) {
	r := &Redactor{key: make([]byte, sha256.Size), keepEnv: keepEnv, arguments: memo{}, texts: memo{}}
	if _, err := rand.Read(r.key); err != nil {
		return nil, fmt.Errorf("cannot draw a key for redaction: %w", err)
	}
	return r, nil
}

// digest stands for a text: 64 bits of it, so that two of a million differ.
func (r *Redactor) digest(s string) string {
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(s))
	return "redacted-" + hex.EncodeToString(mac.Sum(nil)[:8])
}

// secret is what stands for a value that is hidden. An empty one hides nothing, and
// "" and no value at all mean the same.
func (r *Redactor) secret(v any) any {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		if v == "" {
			return v
		}
		return r.digest(v)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		raw = fmt.Append(nil, v)
	}
	return r.digest(string(raw))
}

// object redacts an object of the kind, which it changes, and gives it the kind
// that items of a list do not name.
func (r *Redactor) object(k kind, o map[string]any) map[string]any {
	o["apiVersion"], o["kind"] = k.apiVersion(), k.kind
	if meta := mapping(o["metadata"]); meta != nil {
		r.metadata(meta, false)
	}
	if k.metadata { // whatever the API server has sent
		return map[string]any{"apiVersion": o["apiVersion"], "kind": o["kind"], "metadata": o["metadata"]}
	}
	switch k.resource {
	case cluster.Pods:
		r.podSpec(o["spec"])
	case cluster.DaemonSets, cluster.Deployments, cluster.ReplicaSets, cluster.StatefulSets:
		r.workload(o["spec"])
	case cluster.ControllerRevisions:
		r.revision(o)
	case cluster.ValidatingWebhooks, cluster.MutatingWebhooks:
		for _, w := range sequence(o["webhooks"]) {
			client := mapping(mapping(w)["clientConfig"])
			if url, ok := client["url"].(string); ok {
				client["url"] = r.text(url)
			}
		}
	}
	if status := mapping(o["status"]); status != nil {
		r.messages(status)
	}
	if k.resource == cluster.Events {
		r.messages(o)
	}
	return o
}

// workload redacts the spec of one.
func (r *Redactor) workload(spec any) {
	s := mapping(spec)
	r.template(s["template"])
	for _, claim := range sequence(s["volumeClaimTemplates"]) {
		r.claim(claim)
	}
}

func (r *Redactor) claim(v any) {
	if meta := mapping(mapping(v)["metadata"]); meta != nil {
		r.metadata(meta, true)
	}
}

func (r *Redactor) template(v any) {
	t := mapping(v)
	if meta := mapping(t["metadata"]); meta != nil {
		r.metadata(meta, true)
	}
	r.podSpec(t["spec"])
}

// revision redacts the template that a DaemonSet or StatefulSet stores. Others keep
// there what they like, and nobody reads it.
func (r *Redactor) revision(o map[string]any) {
	owner := ""
	for _, ref := range sequence(mapping(o["metadata"])["ownerReferences"]) {
		m := mapping(ref)
		if api, _ := m["apiVersion"].(string); m["controller"] == true && strings.HasPrefix(api, "apps/") {
			owner, _ = m["kind"].(string)
		}
	}
	data := mapping(o["data"])
	switch {
	case o["data"] == nil:
	case data != nil && (owner == "DaemonSet" || owner == "StatefulSet"):
		r.workload(data["spec"])
	default:
		o["data"] = map[string]any{"redacted": r.secret(o["data"])}
	}
}

// lastApplied is kubectl apply's copy of the object, in clear.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// metadata redacts annotations. kubectl apply's copy is dropped; within a template
// it stands for a difference and has a digest as any other.
func (r *Redactor) metadata(meta map[string]any, template bool) {
	annotations := mapping(meta["annotations"])
	for k, v := range annotations {
		s, ok := v.(string)
		switch {
		case k == lastApplied && !template:
			delete(annotations, k)
		case ok && plainAnnotation(k) && len(s) <= maxPlain:
			annotations[k] = r.text(s)
		default:
			annotations[k] = r.secret(v)
		}
	}
}

// maxPlain bounds an annotation that is kept: none that is read here is longer.
const maxPlain = 1024

// plainAnnotation tells of annotations that the control plane, package managers and
// operators write for others to read: the diagnosis reads them, and who owns an
// object is seen by them. An operator's own may hold anything.
func plainAnnotation(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	switch domain {
	case "deployment.kubernetes.io", "control-plane.alpha.kubernetes.io", "node.alpha.kubernetes.io", "node.kubernetes.io",
		"endpoints.kubernetes.io", "pod-security.kubernetes.io", "cluster-autoscaler.kubernetes.io", "volumes.kubernetes.io",
		"meta.helm.sh", "helm.sh", "argocd.argoproj.io", "kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io":
		return true
	}
	switch key {
	case "deprecated.daemonset.template.generation", "kubectl.kubernetes.io/restartedAt", "kubectl.kubernetes.io/default-container",
		"kubernetes.io/config.source", "kubernetes.io/config.seen", "kubernetes.io/config.mirror", "kubernetes.io/config.hash",
		// Of these tools other annotations hold a copy of the object.
		"objectset.rio.cattle.io/id", "objectset.rio.cattle.io/owner-gvk", "objectset.rio.cattle.io/owner-name", "objectset.rio.cattle.io/owner-namespace",
		"kapp.k14s.io/identity", "configmanagement.gke.io/managed", "configsync.gke.io/resource-id", "components.gke.io/component-name",
		"unsupported.operator.tigera.io/ignore":
		return true
	}
	return false
}

// podSpec redacts the spec of a Pod or of a template.
func (r *Redactor) podSpec(v any) {
	spec := mapping(v)
	for k, v := range spec {
		switch k {
		case "containers", "initContainers", "ephemeralContainers":
			for _, c := range sequence(v) {
				r.container(mapping(c))
			}
		case "volumes":
			for _, vol := range sequence(v) {
				r.volume(mapping(vol))
			}
		}
	}
}

// container redacts one, and whatever lies in it: probes and hooks run commands and
// send headers too.
func (r *Redactor) container(c map[string]any) {
	if r.keepEnv {
		return
	}
	for k, v := range c {
		switch k {
		case "env", "httpHeaders":
			for _, e := range sequence(v) {
				if m := mapping(e); m["value"] != nil {
					m["value"] = r.secret(m["value"])
				}
			}
		case "command", "args":
			c[k] = r.commandLine(v)
		case "path": // of an HTTP probe, which may carry a token
			if s, ok := v.(string); ok {
				c[k] = r.argument(s)
			}
		default:
			r.container(mapping(v))
		}
	}
}

// volume redacts the attributes that drivers are given.
func (r *Redactor) volume(v map[string]any) {
	r.claim(mapping(v["ephemeral"])["volumeClaimTemplate"])
	if r.keepEnv {
		return
	}
	for _, at := range [][2]string{{"csi", "volumeAttributes"}, {"flexVolume", "options"}} {
		attributes := mapping(mapping(v[at[0]])[at[1]])
		for k, value := range attributes {
			attributes[k] = r.secret(value)
		}
	}
}

// messages redacts the texts in a status or an event: they quote what a program or
// a runtime said.
func (r *Redactor) messages(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if s, ok := x.(string); ok && (k == "message" || k == "note") {
				v[k] = r.text(s)
				continue
			}
			if k != "metadata" {
				r.messages(x)
			}
		}
	case []any:
		for _, x := range v {
			r.messages(x)
		}
	}
}

// mapping is a value as a mapping, nil where it is none. A nil one can be read.
func mapping(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func sequence(v any) []any {
	s, _ := v.([]any)
	return s
}
