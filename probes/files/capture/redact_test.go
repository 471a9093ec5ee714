package capture

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

func redactor(t interface{ Fatal(...any) }) *Redactor {
	r, err := NewRedactor(false)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// drawTemplate draws from few values, so that two are often equal, or nearly.
func drawTemplate(t *rapid.T, label string) *corev1.PodTemplateSpec {
	text := rapid.OneOf(
		rapid.SampledFrom([]string{"", "a", "b", "true", "$(A)", "redacted-0011223344556677", "--token", "--token=a", "--token=b", "--v=2", "token=a b", `token="a b"`,
			"Authorization: Bearer a", "https://a:b@c/", "https://a:c@c/", "-u", "x:y", "password: a;b", "password: a", "AbCdEf0123456789AbCdEf0123"}),
		rapid.StringMatching(`(--?[a-z]*(token|password|key|x)[= :]["']?[a-c,; =$]{0,4}["']?)|[a-c=: "'-]{0,8}`))
	list := func(name string) []string { return rapid.SliceOfN(text, 0, 3).Draw(t, label+name) }
	c := corev1.Container{Name: "c", Image: rapid.SampledFrom([]string{"i:1", "i:2"}).Draw(t, label+"image"), Command: list("command"), Args: list("args")}
	for _, v := range list("env") {
		c.Env = append(c.Env, corev1.EnvVar{Name: "E", Value: v})
	}
	if v := text.Draw(t, label+"header"); v != "" {
		c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: text.Draw(t, label+"path"),
			HTTPHeaders: []corev1.HTTPHeader{{Name: "h", Value: v}}}}}
	}
	out := &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{c}}}
	for _, k := range []string{lastApplied, "example.com/a", "meta.helm.sh/release-name"} {
		if v := text.Draw(t, label+k); v != "" {
			if out.Annotations == nil {
				out.Annotations = map[string]string{}
			}
			out.Annotations[k] = v
		}
	}
	if v := text.Draw(t, label+"attribute"); v != "" {
		out.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d", VolumeAttributes: map[string]string{"k": v}}}}}
	}
	return out
}

// redacted is a template as it comes out of a capture.
func redacted(t *rapid.T, r *Redactor, in *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	o, err := object(raw)
	if err != nil {
		t.Fatal(err)
	}
	r.template(o)
	if raw, err = json.Marshal(o); err != nil {
		t.Fatal(err)
	}
	out := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRedactionKeepsEqualTemplatesEqualAndDifferentOnesDifferent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := redactor(t)
		a := drawTemplate(t, "a ")
		b := a.DeepCopy()
		// Now and then in one field only, or in none.
		other := drawTemplate(t, "b ")
		switch rapid.IntRange(0, 6).Draw(t, "differs in") {
		case 0:
			b = other
		case 1:
			b.Spec.Containers[0].Env = other.Spec.Containers[0].Env
		case 2:
			b.Spec.Containers[0].Args = other.Spec.Containers[0].Args
		case 3:
			b.Annotations = other.Annotations
		case 4:
			b.Spec.Containers[0].LivenessProbe = other.Spec.Containers[0].LivenessProbe
		case 5:
			b.Spec.Volumes = other.Spec.Volumes
		}
		if want, got := cluster.SameTemplate(a, b), cluster.SameTemplate(redacted(t, r, a), redacted(t, r, b)); got != want {
			t.Fatalf("equal before: %v, after: %v\n%s\n%s", want, got, mustJSON(a), mustJSON(b))
		}
	})
}

func mustJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func TestADigestTellsNothingBeyondItsCapture(t *testing.T) {
	t.Parallel()
	a, b := redactor(t), redactor(t)
	if a.digest("x") != a.digest("x") || a.digest("x") == a.digest("y") {
		t.Error("equal values must have equal digests, others must not")
	}
	if a.digest("x") == b.digest("x") {
		t.Error("two captures share a key: values could be guessed from one to the other")
	}
}

func TestArgumentsThatLookSecretAreHidden(t *testing.T) {
	t.Parallel()
	// What stands between « and » must go, all else must stay.
	for _, args := range [][]string{
		{"--token=«abc»"},
		{"--password", "«abc»", "--verbose", "abc"},
		{"--password=«a,b;c d»"},
		{"--api-key", "«abc»"},
		{"-u", "«me:abc»"},
		{"DB_PASSWORD=«abc»"},
		{"--from-literal=password=«abc»"},
		{"--dsn=«user:abc@tcp(db:3306)/x»"},
		{"export TOKEN=«abc» && exec app --secret «def»"},
		{"curl -H 'Authorization: Bearer «abc»' https://«me:def»@h/"},
		{`{"password": «"abc"», "user": "me"}`},
		{"psql postgres://«u:abc»@db/x?sslmode=require"},
		{"--key=«abc»"},
		{"--cert", "«ghp_0123456789abcdefghijABCDEFGHIJ012345»"},
		{"--x=«AbCdEfGh0123456789IjKlMnOp»"},
		{"--x=«0123456789abcdef0123456789abcdef»"},
		{"-----BEGIN x", "«-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----»"},

		{"--token-file=/var/run/token", "--tls-private-key-file=/pki/x.key"},
		{"--authorization-mode=Node,RBAC", "--anonymous-auth=false"},
		{"--tls-key=/pki/x.key"},
		{"--token=$(TOKEN)", "--password", "${PASSWORD}", "echo Bearer $TOKEN"},
		{"--v=2", "--kubeconfig", "/etc/kubeconfig", "--node-name=$(NODE_NAME)"},
		{"--image=registry.example/app@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},
		{"--feature-gates=RotateKubeletServerCertificate=true,NodeDisruptionExclusion=false"},
		{"/bin/calico-node", "-felix-live", "-bird-live"},
		{"--id=6f1c8a1e-5d0b-4c43-9c2f-0f4d8b1c2d3e"},
	} {
		r := redactor(t)
		var in, want []any
		for _, a := range args {
			in = append(in, strings.NewReplacer("«", "", "»", "").Replace(a))
			if before, rest, ok := strings.Cut(a, "«"); ok {
				for ok {
					var hidden string
					hidden, rest, _ = strings.Cut(rest, "»")
					before += r.digest(hidden)
					var more string
					more, rest, ok = strings.Cut(rest, "«")
					before += more
				}
				a = before
			}
			want = append(want, a)
		}
		if got := mustJSON(r.arguments(in)); got != mustJSON(want) {
			t.Errorf("%q:\ngot  %s\nwant %s", args, got, mustJSON(want))
		}
	}
}

func TestMessagesThatTheDiagnosisReadsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	r := redactor(t)
	for _, s := range []string{
		`failed to authorize: failed to fetch oauth token: unexpected status: 401 Unauthorized`,
		`MountVolume.SetUp failed for volume "token" : secret "my-token" not found`,
		`couldn't find key token in Secret shop/db`,
		`Error creating: pods "x-" is forbidden: error looking up service account shop/x: serviceaccount "x" not found`,
		`pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`,
		`Bearer realm="https://auth.example/token",service="registry.example"`,
		`container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized`,
		`back-off 40s restarting failed container=agent pod=agent-x2x4z_kube-system(6f1c8a1e-5d0b-4c43-9c2f-0f4d8b1c2d3e)`,
		`error getting ClusterInformation: connection is unauthorized: Unauthorized`,
		`0/12 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }.`,
	} {
		if got := r.text(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func TestNumbersAndUnknownFieldsComeThroughAsTheyWere(t *testing.T) {
	t.Parallel()
	const in = `{"metadata":{"name":"n"},"spec":{"newField":{"a":[1,2.50,12345678901234567890]},"template":{"spec":{"containers":[{"name":"c","env":[{"name":"E","value":""},{"name":"F"}]}]}}}}`
	o, err := object([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	got := mustJSON(redactor(t).object(kind{resource: cluster.DaemonSets, group: "apps", version: "v1", kind: "DaemonSet"}, o))
	want := `{"apiVersion":"apps/v1","kind":"DaemonSet",` + in[1:]
	var a, b any
	if json.Unmarshal([]byte(got), &a) != nil || json.Unmarshal([]byte(want), &b) != nil || mustJSON(a) != mustJSON(b) || !strings.Contains(got, "[1,2.50,12345678901234567890]") {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
