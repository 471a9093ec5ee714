// Package redact hides what looks secret in texts and JSON that come from a
// cluster: before they are shown, kept or written. It knows no kind of object, and
// hides by names and by forms.
package redact

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Hidden stands where a value was that looked secret.
const Hidden = "[hidden]"

// quotedOrWord is a value: quoted, or up to the next space or separator.
const quotedOrWord = `("(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s,;"'&]+)`

// schemed is the same where the value may be a header's: "Basic dXNlcjpwYXNz".
const schemed = `("(?:[^"\\]|\\.)*"?|'[^']*'?|(?:(?i:basic|bearer|digest|negotiate|token)[ \t]+)?[^\s,;"'&]+)`

var (
	// secretName matches the names of variables, keys, flags and headers whose
	// values are secret: DB_PASSWORD, PGPASSWORD, apiKey, token, client-secret. They
	// must end so: secretName and tokenExpirationSeconds are not among them.
	secretName = regexp.MustCompile(`(?i)(?:(?:password|passwd|passphrase|secret|token|credentials?|(?:api|access|secret|private|encryption|signing|client)[-_.]?key(?:[-_.]?(?:id|data))?|connection[-_.]?string)` +
		`|(?:^|[_.-])(?:pass|pwd|auth|authorization|cookie|dsn))$`)

	privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`)
	bearer     = regexp.MustCompile(`(?i)\b(bearer\s+)[A-Za-z0-9+/=_~.-]{8,}`)
	header     = regexp.MustCompile(`(?i)(authorization["']?\s*[:=]\s*["']?(?:basic|digest|negotiate)\s+)[^\s"']+`)
	userinfo   = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:@]*):([^/\s@]+)@`)
	// shapes are tokens known by their form, whatever stands around them.
	shapes = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?` + // JSON Web Token
		`|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b` + // AWS
		`|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}` +
		`|\bglpat-[A-Za-z0-9_-]{16,}` +
		`|\bxox[abeprs]-[A-Za-z0-9-]{10,}` + // Slack
		`|\bAIza[0-9A-Za-z_-]{30,}` + // Google
		`|\bsk-[A-Za-z0-9_-]{20,}`)
	// bootstrap tokens look like host names, but for a digit in the second half.
	bootstrap = regexp.MustCompile(`\b[a-z0-9]{6}\.([a-z0-9]{16})\b`)

	// assigned is NAME=value, "name": "value", --name value, name: value. With it
	// goes what a diff sets beside it: value -> value.
	assigned = regexp.MustCompile(`([A-Za-z][A-Za-z0-9_.-]*)(["']?\s*[=:]\s*)` + quotedOrWord + `(?:(\s*(?:->|→|=>)\s*)` + quotedOrWord + `)?`)
	flagged  = regexp.MustCompile(`(--?)([A-Za-z][A-Za-z0-9-]*)(\s+)` + quotedOrWord)
	// variable is an environment variable of a container as JSON or YAML, or in the
	// lines of a diff, where a value after the change may follow; that is another.
	variable = regexp.MustCompile(`("?name"?\s*:\s*)("?)([A-Za-z_][A-Za-z0-9_.-]*)("?[\s,+-]*"?value"?\s*:\s*)` + schemed +
		`((?:[\s,+-]+"?value"?\s*:\s*` + schemed + `)*)`)
	another = regexp.MustCompile(`([\s,+-]+"?value"?\s*:\s*)` + schemed)
)

// secret tells whether values of that name are to be hidden.
func secret(name string) bool { return secretName.MatchString(name) }

// Text replaces in a text what looks secret: private keys, bearer and other
// tokens, passwords in URLs, and values of names that promise a secret. It would
// rather hide a word too many; names of objects stay.
func Text(s string) string {
	if s == "" {
		return s
	}
	// Nearly every text holds none of these words: looking for them first spares it
	// the expressions, which are slow.
	lower := strings.ToLower(s)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(lower, w) })
	}
	if has("private key-----") {
		s = privateKey.ReplaceAllString(s, Hidden)
	}
	if has("bearer") {
		s = bearer.ReplaceAllString(s, "${1}"+Hidden)
	}
	if has("authorization") {
		s = header.ReplaceAllString(s, "${1}"+Hidden)
	}
	if has("://") && has("@") {
		s = userinfo.ReplaceAllString(s, "${1}:"+Hidden+"@")
	}
	if has("eyj", "akia", "asia", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "aiza", "sk-") {
		s = shapes.ReplaceAllString(s, Hidden)
	}
	if has(".") {
		s = replace(bootstrap, s, func(m []string) string {
			if !strings.ContainsAny(m[1], "0123456789") {
				return m[0]
			}
			return Hidden
		})
	}
	if !has("pass", "pwd", "secret", "token", "credential", "key", "auth", "cookie", "dsn", "connection") {
		return s
	}
	s = scan(variable, s, 3, func(m []string) string {
		after := replace(another, m[6], func(m []string) string { return m[1] + hide(m[2]) })
		return m[1] + m[2] + m[3] + m[4] + hide(m[5]) + after
	})
	s = scan(assigned, s, 1, func(m []string) string {
		out := m[1] + m[2] + hide(m[3])
		if m[4] != "" {
			out += m[4] + hide(m[5])
		}
		return out
	})
	return scan(flagged, s, 2, func(m []string) string { return m[1] + m[2] + m[3] + hide(m[4]) })
}

func replace(re *regexp.Regexp, s string, f func(groups []string) string) string {
	return re.ReplaceAllStringFunc(s, func(m string) string { return f(re.FindStringSubmatch(m)) })
}

// scan replaces the matches whose group `name` is a secret's name. Behind any other
// name it looks on at once, for what looks like its value may be the next name:
// "Error: password: hunter2".
func scan(re *regexp.Regexp, s string, name int, f func(groups []string) string) string {
	var out strings.Builder
	for {
		at := re.FindStringSubmatchIndex(s)
		if at == nil {
			return out.String() + s
		}
		groups := make([]string, len(at)/2)
		for i := range groups {
			if at[2*i] >= 0 {
				groups[i] = s[at[2*i]:at[2*i+1]]
			}
		}
		if secret(groups[name]) && !strings.HasSuffix(groups[0], ":") {
			out.WriteString(s[:at[0]] + f(groups))
			s = s[at[1]:]
			continue
		}
		out.WriteString(s[:at[2*name+1]])
		s = s[at[2*name+1]:]
	}
}

// hide keeps the quotes around a value, and values that tell nothing.
func hide(v string) string {
	switch strings.ToLower(strings.Trim(v, `"'`)) {
	case "", "true", "false", "null", "nil", "<none>", "none", "{", "[", "{}", "[]", strings.ToLower(Hidden):
		return v
	}
	if q := v[0]; q == '"' || q == '\'' {
		return string(q) + Hidden + string(q)
	}
	return Hidden
}

// JSON redacts every string of a JSON document, those under a secret name
// and values of environment variables with a secret name as a whole, and JSON
// inside strings likewise. What is not JSON is replaced by a JSON string.
func JSON(data json.RawMessage) json.RawMessage {
	if len(data) == 0 {
		return data
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // a revision or a UID must not become a float
	var v any
	if err := d.Decode(&v); err != nil || d.Decode(new(any)) != io.EOF {
		out, _ := json.Marshal(Text(string(data)))
		return out
	}
	clean, changed := redactValue(v)
	if !changed {
		return data
	}
	out, err := json.Marshal(clean)
	if err != nil {
		out, _ = json.Marshal(Hidden)
	}
	return out
}

// redactValue also tells whether anything was hidden, so that what holds no secret
// stays byte for byte as it is.
func redactValue(v any) (any, bool) {
	changed := false
	set := func(to any, ch bool) any { changed = changed || ch; return to }
	switch v := v.(type) {
	case string:
		return redactString(v)
	case []any:
		lines := make([]string, 0, len(v))
		for i := range v {
			v[i] = set(redactValue(v[i]))
			if line, ok := v[i].(string); ok {
				lines = append(lines, line)
			}
		}
		if len(lines) == len(v) {
			return redactLines(v, lines, changed)
		}
	case map[string]any:
		name, _ := v["name"].(string)
		for k, x := range v {
			s, text := x.(string)
			switch {
			case text && s != "" && (secret(k) || k == "value" && secret(name)):
				v[k] = set(hide(s), hide(s) != s)
			default:
				v[k] = set(redactValue(x))
			}
		}
	}
	return v, changed
}

// redactLines looks at the lines of a diff or the arguments of a command together:
// the name stands in one, the secret in the next.
func redactLines(v []any, lines []string, changed bool) (any, bool) {
	whole := strings.Join(lines, "\n")
	clean := Text(whole)
	if clean == whole {
		return v, changed
	}
	v = v[:0]
	for _, line := range strings.Split(clean, "\n") {
		v = append(v, line)
	}
	return v, true
}

func redactString(s string) (any, bool) {
	if t := strings.TrimSpace(s); strings.HasPrefix(t, "{") || strings.HasPrefix(t, "[") {
		if json.Valid([]byte(t)) {
			clean := string(JSON(json.RawMessage(t)))
			return clean, clean != t
		}
	}
	clean := Text(s)
	return clean, clean != s
}
