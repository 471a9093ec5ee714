package action

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/internal/redact"
)

// secretName matches names of environment variables, headers, annotations and
// flags whose values are not for a screen. It errs on the side of hiding.
var secretName = regexp.MustCompile(`(?i)(pass(word|wd|phrase)?|secret|token|credential|private|api[-_]?key|access[-_]?key|auth|cert|signature|dsn|conn(ection)?[-_]?str)`)

// flagValue matches --flag=value.
var flagValue = regexp.MustCompile(`^(--?[\w.-]+=)(.+)$`)

const hidden, hiddenOther = "(hidden)", "(hidden, another value)"

// plainTemplate is a Pod template as plain JSON, so that no field is forgotten where a
// secret may stand.
type plainTemplate map[string]any

func plain(t *corev1.PodTemplateSpec) (plainTemplate, error) {
	raw, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var out plainTemplate
	return out, d.Decode(&out)
}

// hideSecrets replaces, in both templates, what looks secret. A value that differs
// between them still shows as a difference.
func hideSecrets(before, after plainTemplate) {
	was := map[string]string{}
	walk("", map[string]any(before), func(where, v string, secret bool) string {
		was[where] = v
		return conceal(v, secret, hidden)
	})
	walk("", map[string]any(after), func(where, v string, secret bool) string {
		if old, ok := was[where]; ok && old != v {
			return conceal(v, secret, hiddenOther)
		}
		return conceal(v, secret, hidden)
	})
}

// conceal hides a value, or what in it is secret.
func conceal(v string, secret bool, word string) string {
	if v == "" {
		return v
	}
	if secret {
		return word
	}
	if m := flagValue.FindStringSubmatch(v); m != nil && secretName.MatchString(m[1]) {
		return m[1] + word
	}
	clean := redact.Text(v)
	if t := strings.TrimSpace(v); json.Valid([]byte(t)) && strings.HasPrefix(t, "{") {
		clean = string(redact.JSON(json.RawMessage(t)))
	}
	return strings.ReplaceAll(clean, redact.Hidden, word)
}

// walk passes every text in v through change, with a name for its place. Values of
// annotations are secret by their key, values of variables and headers by the name
// beside them.
func walk(where string, v any, change func(where, value string, secret bool) string) {
	switch v := v.(type) {
	case map[string]any:
		name, _ := v["name"].(string)
		for k, x := range v {
			at := where + "/" + k
			s, text := x.(string)
			switch {
			case !text:
				walk(at, x, change)
			case k == "value" && name != "":
				v[k] = change(at, s, secretName.MatchString(name))
			default:
				v[k] = change(at, s, strings.HasSuffix(where, "/annotations") && secretName.MatchString(k))
			}
		}
	case []any:
		if line, ok := texts(v); ok {
			words(where+"/", line, change)
			for i := range line {
				v[i] = line[i]
			}
			return
		}
		for i, x := range v {
			at := fmt.Sprint(where, "/", i)
			if m, ok := x.(map[string]any); ok && m["name"] != nil {
				at = fmt.Sprint(where, "/", m["name"])
			}
			walk(at, x, change)
		}
	}
}

func texts(v []any) ([]string, bool) {
	out := make([]string, len(v))
	for i := range v {
		s, ok := v[i].(string)
		if !ok {
			return nil, false
		}
		out[i] = s
	}
	return out, true
}

// words goes over a command line; the word after a bare --password is one too.
func words(where string, line []string, change func(where, value string, secret bool) string) {
	bare := ""
	for i, w := range line {
		at := where + bare + w
		if name, _, ok := strings.Cut(w, "="); ok {
			at = where + name
		}
		secret := bare != ""
		if secret {
			at = where + bare
		}
		bare = ""
		if strings.HasPrefix(w, "-") && !strings.Contains(w, "=") && secretName.MatchString(w) && !secret {
			bare = w
		}
		line[i] = change(at, w, secret)
	}
}
