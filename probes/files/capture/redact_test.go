package capture

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// texts are few and alike, so that two are often equal, or nearly.
var texts = rapid.OneOf(
	rapid.SampledFrom([]string{"", "a", "ab", "true", "$(A)", "redacted-0011223344556677", "--token", "--token=a", "--token=ab", "--v=2", "token=a b", `token="a b"`,
		"Authorization: Bearer a", "https://a:b@c/", "https://a:bc@c/", "-u", "x:y", "password: a;b", "password: a", "AbCdEf0123456789AbCdEf0123", "AbCdEf0123456789AbCdEf0124"}),
	rapid.StringMatching(`(--?(token|password|key|x)[= :]["']?[ab,; =$]{0,4}["']?)|[ab=: "'-]{0,4}`))

// edit makes another text, or one that differs in a letter, or the same.
func edit(t *rapid.T, s string) string {
	if s == "" || rapid.Bool().Draw(t, "other") {
		return texts.Draw(t, "text")
	}
	at := rapid.IntRange(0, len(s)-1).Draw(t, "at")
	return s[:at] + rapid.SampledFrom([]string{"", "a", "b", s[at:at+1] + "a"}).Draw(t, "letter") + s[at+1:]
}

// template holds nine texts, wherever a template can hold something secret.
func template(s []string) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{lastApplied: s[0], "example.com/a": s[1], "meta.helm.sh/release-name": s[2]}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Env: []corev1.EnvVar{{Name: "E", Value: s[3]}}, Args: []string{s[4], s[5]},
				LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: s[6], HTTPHeaders: []corev1.HTTPHeader{{Name: "h", Value: s[7]}}}}}}},
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d", VolumeAttributes: map[string]string{"k": s[8]}}}}},
		},
	}
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
		one := rapid.SliceOfN(texts, 9, 9).Draw(t, "texts")
		a := template(one)
		for i := range 2 * len(one) { // each of them, by itself, is another
			at := i % len(one)
			two := slices.Clone(one)
			two[at] = edit(t, two[at])
			b := template(two)
			if want, got := cluster.SameTemplate(a, b), cluster.SameTemplate(redacted(t, r, a), redacted(t, r, b)); got != want {
				t.Fatalf("equal before: %v, after: %v\n%s\n%s", want, got, mustJSON(a), mustJSON(b))
			}
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
	if first, again := a.digest("x"), a.digest("x"); first != again || first == a.digest("y") {
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
		if got := mustJSON(r.commandLine(in)); got != mustJSON(want) {
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
