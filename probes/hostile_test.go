package probes_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// A command of a report is made to be pasted, and the name in it comes from the message
// of an event, which anybody may write who may create events.
func TestNamesInCommandsAreWordsOfTheShell(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]string{
		"quota":   `Error creating: pods "agent-x7k2p" is forbidden: exceeded quota: q;$(reboot), requested: pods=1, used: pods=10, limited: pods=10`,
		"account": "Error creating: pods \"agent-\" is forbidden: error looking up service account agents/x;$(reboot): serviceaccount \"x;$(reboot)\" not found",
	} {
		why := string(refused(message, time.Minute).agent().Recommendation.Why)
		if _, command, ok := strings.Cut(why, "kubectl "); !ok || strings.Contains(strings.NewReplacer("'q;$(reboot)'", "", "'x;$(reboot)'", "").Replace(command), "$(") {
			t.Errorf("%s: what to do is %q, wanted a command with the name in quotes", name, why)
		}
	}
}

func TestSecretsInMessagesAndURLsStayHidden(t *testing.T) {
	t.Parallel()
	const secret = "hunter2s3cr3t"
	url := "https://policy:" + secret + "@policies.example/mutate?token=" + secret
	s := refused(`Error creating: Internal error occurred: failed calling webhook "pods.example.com": failed to call webhook: Post "`+url+`": context deadline exceeded`, time.Minute)
	s.hook(admissionv1.WebhookClientConfig{URL: &url})
	s.Nodes[0].Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", Message: "runtime: password=" + secret, LastTransitionTime: past(3 * time.Minute)},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue, Reason: "Full", Message: "token=" + secret, LastTransitionTime: past(3 * time.Minute)}}
	text, err := json.Marshal(probes.Diagnose(cluster.New(s.Objects, s.meta), probes.Options{All: true}).Report)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"policies.example/mutate", "runtime: password=", "Full"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report does not show %q at all", want)
		}
	}
	if i := strings.Index(string(text), secret); i >= 0 {
		t.Errorf("the report shows the secret: %s", text[max(0, i-200):i+len(secret)])
	}
}
