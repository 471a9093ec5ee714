package capture

import (
	"regexp"
	"strings"
)

// quoted is a value in a script, in quotes or without.
const quoted = `("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'&;|]+)`

var (
	// secretName finds names of what is secret; keyName finds more that are, unless
	// their value is a path.
	secretName = regexp.MustCompile(`(?i)passw|passphrase|pass$|pass[-_.]|pwd|secret|token|credential|api[-_.]?key|access[-_.]?key|private[-_.]?key|sign(ing)?[-_.]?key|encryption[-_.]?key|license|bearer|auth($|[^o])|authoriz|dsn$|connection[-_.]?string|cookie|webhook[-_.]?url`)
	keyName    = regexp.MustCompile(`(?i)(^|[-_.])key$`)
	// plainName finds those of them that say where or how, and not what.
	plainName = regexp.MustCompile(`(?i:[-_.](file|path|dir|directory|mode|name|namespace|type|ttl|duration|period|expiration|expiry|timeout|interval|kubeconfig|audience|issuer|enabled|plugin|class|ref|size|count|limit)s?$)|(File|Path|Dir|Mode|Name|Namespace|Type|TTL)$`)
	// plainValue finds values that hide nothing: a switch, the name of a scheme, a
	// reference to a variable.
	plainValue = regexp.MustCompile(`^(?i:true|false|null|none|bearer|basic|["']?\$(\([a-z_][\w.-]*\)|\{[a-z_]\w*\}|[a-z_]\w*)["']?)?$`)

	// assignment is NAME=VALUE or NAME: VALUE, spaced is --NAME VALUE, anywhere in a text.
	assignment = regexp.MustCompile(`([\w.-]+)["']?\s*[=:]\s*` + quoted)
	spaced     = regexp.MustCompile(`(--?[A-Za-z][\w.-]*)\s+` + quoted)
	equals     = regexp.MustCompile(`([\w.-]+)["']?\s?=\s?` + quoted)
	// wholeItem is an argument that is one assignment as a whole.
	wholeItem = regexp.MustCompile(`(?s)^(-{0,2}[A-Za-z_][\w.-]*)=(.+)$`)
	flag      = regexp.MustCompile(`^--?[A-Za-z][\w.-]*$`)

	// userinfo is the part of a URL before the @, curlUser is curl's.
	userinfo = regexp.MustCompile(`://([^/\s@"']+)@`)
	curlUser = regexp.MustCompile(`(?:^|\s)(?:-u|--user|--proxy-user)[\s=]+` + quoted)
	// anyScheme is what follows the name of a scheme in an Authorization header;
	// scheme is one that cannot be prose, nor a registry's challenge (Bearer realm="…").
	anyScheme = regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+([^\s"']+)`)
	scheme    = regexp.MustCompile(`(?i)\b(?:bearer|basic)\s+([\w.~+/=-]{12,})`)

	// known are the shapes of secrets that tell themselves: private keys, JWTs, and
	// tokens of AWS, GitHub, GitLab, Slack, Stripe, Google, Vault, npm and kubeadm.
	known = regexp.MustCompile(`((?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)` +
		`|\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?` +
		`|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}|\bxox[abeoprs]-[\w-]{10,}` +
		`|\b[rs]k_(?:live|test)_\w{10,}|\bAIza[\w-]{30,}|\bhv[sbr]\.[\w-]{20,}|\bnpm_\w{30,}|\b[a-z0-9]{6}\.[a-z0-9]{16}\b)`)
	// opaque are long runs of the letters that keys are written in. The hash that an
	// image is pinned by is public.
	opaque = regexp.MustCompile(`(?:sha\d+:)?[A-Za-z0-9+_-]{24,}`)
	hex32  = regexp.MustCompile(`^[0-9a-f]{32,}$`)
)

// commandLine redacts a command or its arguments: --flag=value, --flag value in two
// items, and scripts.
func (r *Redactor) commandLine(v any) any {
	list := sequence(v)
	expected := false // the item before names what is secret
	for i, item := range list {
		s, ok := item.(string)
		if !ok {
			continue
		}
		isFlag := flag.MatchString(s)
		switch {
		case expected && !isFlag && !plainValue.MatchString(s):
			list[i] = r.digest(s)
		case !isFlag:
			list[i] = r.argument(s)
		}
		expected = isFlag && (secretNamed(s, "") || s == "-u" || s == "--user")
	}
	return v
}

// argument redacts one.
func (r *Redactor) argument(s string) string { return r.arguments.of(s, r.hideArgument) }

func (r *Redactor) hideArgument(s string) string {
	if m := wholeItem.FindStringSubmatch(s); m != nil && secretNamed(m[1], m[2]) && !plainValue.MatchString(m[2]) {
		return m[1] + "=" + r.digest(m[2])
	}
	s = r.hide(anyScheme, s)
	s = r.hideNamed(assignment, s)
	s = r.hideNamed(spaced, s)
	s = r.hide(curlUser, s)
	s = r.hideText(s)
	return opaque.ReplaceAllStringFunc(s, func(m string) string {
		if looksRandom(m) {
			return r.digest(m)
		}
		return m
	})
}

// text redacts what is known to be secret by itself, wherever it stands. In a
// message a colon says nothing: "failed to fetch token: forbidden".
func (r *Redactor) text(s string) string { return r.texts.of(s, r.hideText) }

func (r *Redactor) hideText(s string) string {
	s = r.hideNamed(equals, s)
	s = r.hide(userinfo, s)
	s = r.hide(scheme, s)
	return r.hide(known, s)
}

// hide puts digests in the place of the pattern's group.
func (r *Redactor) hide(pattern *regexp.Regexp, s string) string {
	var out strings.Builder
	end := 0
	for _, m := range pattern.FindAllStringSubmatchIndex(s, -1) {
		out.WriteString(s[end:m[2]])
		out.WriteString(r.once(s[m[2]:m[3]]))
		end = m[3]
	}
	return out.String() + s[end:]
}

// hideNamed puts digests in the place of the pattern's second group wherever the
// first one names what is secret. A value may be an assignment itself, as in
// --set=password=x, so the search goes on within one that is kept.
func (r *Redactor) hideNamed(pattern *regexp.Regexp, s string) string {
	var out strings.Builder
	for {
		m := pattern.FindStringSubmatchIndex(s)
		if m == nil {
			return out.String() + s
		}
		name, value := s[m[2]:m[3]], s[m[4]:m[5]]
		out.WriteString(s[:m[4]])
		s = s[m[4]:]
		if secretNamed(name, value) {
			out.WriteString(r.once(value))
			s = s[len(value):]
		}
	}
}

// once is the digest of a value that hides something and is none itself. Nobody who
// does not know the key can write one that could be mistaken.
func (r *Redactor) once(value string) string {
	if plainValue.MatchString(value) || strings.HasPrefix(value, "redacted-") {
		return value
	}
	return r.digest(value)
}

// secretNamed tells whether a name is that of something secret.
func secretNamed(name, value string) bool {
	switch {
	case plainName.MatchString(name):
		return false
	case secretName.MatchString(name):
		return true
	}
	return keyName.MatchString(name) && !strings.HasPrefix(value, "/")
}

// looksRandom tells a key from a long name: it mixes cases and digits, or it is hex
// throughout.
func looksRandom(s string) bool {
	if strings.Contains(s, ":") { // sha256: an image is pinned by it
		return false
	}
	if hex32.MatchString(s) {
		return true
	}
	digits := 0
	for _, c := range s {
		if c >= '0' && c <= '9' {
			digits++
		}
	}
	return digits > 2 && strings.ToLower(s) != s && strings.ToUpper(s) != s
}
