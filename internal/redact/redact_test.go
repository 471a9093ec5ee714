package redact

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTextHidesWhatLooksSecretAndKeepsTheRest(t *testing.T) {
	t.Parallel()
	pem := "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKC\nabc\n-----END RSA PRIVATE KEY-----"
	for _, c := range []struct{ in, want string }{
		{"DB_PASSWORD=hunter2 next", "DB_PASSWORD=[hidden] next"},
		{"PGPASSWORD=hunter2", "PGPASSWORD=[hidden]"},
		{`password: "hun ter2", user: bob`, `password: "[hidden]", user: bob`},
		{`password: 'hunter2'`, `password: '[hidden]'`},
		{`{"password":"hun\"ter2","user":"bob"}`, `{"password":"[hidden]","user":"bob"}`},
		{"apiKey=abc&user=bob", "apiKey=[hidden]&user=bob"},
		{"AWS_SECRET_ACCESS_KEY: wJalrXUtnFEMI", "AWS_SECRET_ACCESS_KEY: [hidden]"},
		{"--token=abc --user bob", "--token=[hidden] --user bob"},
		{"--client-secret abc --user bob", "--client-secret [hidden] --user bob"},
		{"- env API_TOKEN: old1 → new2", "- env API_TOKEN: [hidden] → [hidden]"},
		{"TOKEN: old1 -> new2 done", "TOKEN: [hidden] -> [hidden] done"},
		{"Authorization: Bearer abcdefgh12345", "Authorization: [hidden] [hidden]"},
		{"- name: Authorization\n  value: Basic dXNlcjpwYXNz\n  port: 1", "- name: Authorization\n  value: [hidden]\n  port: 1"},
		{"sent bearer abcdefgh12345", "sent bearer [hidden]"},
		{"-H 'Authorization: Basic dXNlcjpwYXNz'", "-H 'Authorization: [hidden] [hidden]'"},
		{"jwt eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJr.c2lnbmF0dXJl end", "jwt [hidden] end"},
		{"https://bob:hunter2@registry.example.com/v2", "https://bob:[hidden]@registry.example.com/v2"},
		{"postgres://app:p%40ss@db:5432/app", "postgres://app:[hidden]@db:5432/app"},
		{"key AKIAIOSFODNN7EXAMPLE end", "key [hidden] end"},
		{"ghp_abcdefghijklmnopqrstuvwxyz0123456789 end", "[hidden] end"},
		{"join abcdef.0123456789abcdef end", "join [hidden] end"},
		{"Error: password: hunter2", "Error: password: [hidden]"},
		{"cannot read secret: password: hunter2", "cannot read secret: password: [hidden]"},
		{"env=API_TOKEN=abc", "env=API_TOKEN=[hidden]"},
		{pem + " end", "[hidden] end"},
		{strings.ReplaceAll(pem, "RSA ", ""), "[hidden]"},
		{"glpat-abcdefghij0123456789 xoxb-0123456789ab AIzaabcdefghijklmnopqrstuvwxyz01234567", "[hidden] [hidden] [hidden]"},
		{"github_pat_0123456789abcdefghijk gho_0123456789abcdefghijk sk-0123456789abcdefghijk", "[hidden] [hidden] [hidden]"},
		{"pwd=x dsn=y COOKIE: z connection_string='a b' db.credentials: c", "pwd=[hidden] dsn=[hidden] COOKIE: [hidden] connection_string='[hidden]' db.credentials: [hidden]"},
		{strings.TrimSuffix(pem, "-----END RSA PRIVATE KEY-----"), "[hidden]"},
		{"name: DB_PASSWORD\n  value: hunter2\nname: MODE\n  value: fast", "name: DB_PASSWORD\n  value: [hidden]\nname: MODE\n  value: fast"},
		{`{"name":"DB_PASSWORD","value":"hunter2"},{"name":"MODE","value":"fast"}`, `{"name":"DB_PASSWORD","value":"[hidden]"},{"name":"MODE","value":"fast"}`},

		// What tells an operator something stays.
		{`secret "calico-typha-certs" not found`, `secret "calico-typha-certs" not found`},
		{"secretName: calico-typha-certs", "secretName: calico-typha-certs"},
		{"tokenExpirationSeconds: 3607", "tokenExpirationSeconds: 3607"},
		{"automountServiceAccountToken: false", "automountServiceAccountToken: false"},
		{"Error: configmap \"x\" not found", "Error: configmap \"x\" not found"},
		{"x509: certificate has expired", "x509: certificate has expired"},
		{"basic authentication failed", "basic authentication failed"},
		{"image registry.example.com/app@sha256:0123456789abcdef", "image registry.example.com/app@sha256:0123456789abcdef"},
		{"node01.internalnetworks is NotReady", "node01.internalnetworks is NotReady"},
		{"MODE=fast CALICO_IPV4POOL_CIDR=10.0.0.0/16", "MODE=fast CALICO_IPV4POOL_CIDR=10.0.0.0/16"},
		{"kubectl rollout undo daemonset/x -n kube-system --to-revision=6", "kubectl rollout undo daemonset/x -n kube-system --to-revision=6"},
		{"key: topology.kubernetes.io/zone", "key: topology.kubernetes.io/zone"},
		{"", ""},
	} {
		if got := Text(c.in); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.in, got, c.want)
		}
	}
}

func TestJSONLooksIntoTheStructure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"nothing secret stays byte for byte", `{ "b": 1.50, "a": [9007199254740993] }`, `{ "b": 1.50, "a": [9007199254740993] }`},
		{"a secret name", `{"user":"bob","password":"hunter2"}`, `{"password":"[hidden]","user":"bob"}`},
		{"a big number beside a secret", `{"n":9007199254740993,"token":"x"}`, `{"n":9007199254740993,"token":"[hidden]"}`},
		{"a variable", `{"env":[{"name":"DB_PASSWORD","value":"hunter2"},{"name":"MODE","value":"fast"}]}`, `{"env":[{"name":"DB_PASSWORD","value":"[hidden]"},{"name":"MODE","value":"fast"}]}`},
		{"a reference to a Secret", `{"name":"DB_PASSWORD","valueFrom":{"secretKeyRef":{"name":"db","key":"pw"}}}`, `{"name":"DB_PASSWORD","valueFrom":{"secretKeyRef":{"name":"db","key":"pw"}}}`},
		{"JSON in a string", `{"last-applied":"{\"env\":[{\"name\":\"A_TOKEN\",\"value\":\"x\"}]}"}`, `{"last-applied":"{\"env\":[{\"name\":\"A_TOKEN\",\"value\":\"[hidden]\"}]}"}`},
		{"arguments", `{"args":["--password","hunter2","--fast"]}`, `{"args":["--password","[hidden]","--fast"]}`},
		{"lines of a diff", `["- name: A_TOKEN","-   value: old","+   value: new","  name: MODE"]`, `["- name: A_TOKEN","-   value: [hidden]","+   value: [hidden]","  name: MODE"]`},
		{"a text", `{"text":"sent Bearer abcdefgh1234"}`, `{"text":"sent Bearer [hidden]"}`},
		{"no JSON", `{"password":"hunter2"`, `"{\"password\":\"[hidden]\""`},
		{"two documents", `{"a":1}{"b":2}`, `"{\"a\":1}{\"b\":2}"`},
		{"nothing", ``, ``},
	} {
		if got := string(JSON(json.RawMessage(c.in))); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestRedactTwiceIsRedactOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"password", "token: ", "=", ": ", "abc", `"`, "'", " ", "\n", "Bearer ", "eyJhbGciOiJI.eyJp.x", "https://a:b@c", "name: DB_TOKEN", "value: ", "→ ", "--pwd ", "[hidden]"}), 0, 12).Draw(t, "parts")
		once := Text(strings.Join(parts, ""))
		if twice := Text(once); twice != once {
			t.Fatalf("%q became %q", once, twice)
		}
	})
}
