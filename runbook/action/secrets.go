package action

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// secretName matches names of environment variables and flags whose values are
// not for a screen. It errs on the side of hiding.
var secretName = regexp.MustCompile(`(?i)(pass(word|wd|phrase)?|secret|token|credential|private|api[-_]?key|access[-_]?key|auth|cert|signature|dsn|conn(ection)?[-_]?str)`)

// flagValue matches --flag=value, userInfo the password of a URL.
var (
	flagValue = regexp.MustCompile(`^(--?[\w.-]+=)(.+)$`)
	userInfo  = regexp.MustCompile(`(://[^/\s:@]*:)([^/\s@]+)(@)`)
)

const hidden, hiddenOther = "(hidden)", "(hidden, another value)"

// hideSecrets replaces, in both templates, what looks secret. A value that differs
// between them still shows as a difference.
func hideSecrets(before, after *corev1.PodTemplateSpec) {
	was := map[string]string{}
	walkValues(before, func(where, v string, secret bool) string {
		was[where] = v
		return conceal(v, secret, hidden)
	})
	walkValues(after, func(where, v string, secret bool) string {
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
	return userInfo.ReplaceAllString(v, "${1}"+word+"${3}")
}

// walkValues passes every value of the template that may carry a secret through
// change, with a name for its place.
func walkValues(t *corev1.PodTemplateSpec, change func(where, value string, secret bool) string) {
	for k, v := range t.Annotations {
		t.Annotations[k] = change("annotation/"+k, v, secretName.MatchString(k))
	}
	for _, list := range [][]corev1.Container{t.Spec.InitContainers, t.Spec.Containers} {
		for i := range list {
			c := &list[i]
			for j := range c.Env {
				e := &c.Env[j]
				e.Value = change(c.Name+"/env/"+e.Name, e.Value, secretName.MatchString(e.Name))
			}
			words(c.Name+"/command/", c.Command, change)
			words(c.Name+"/args/", c.Args, change)
		}
	}
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
