package signs

import (
	"regexp"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// ofProgram are signs that a container's program cannot start or do its work.
var ofProgram = []sign{
	{
		name: "ImagePullFails", state: report.StepAnomaly,
		means: "The image could not be pulled: its name or tag is wrong, the registry refuses, or the node does not reach it.",
		do:    "The end of the line says which: not found is the template's fault, unauthorized the pull secret's, a network error this node's.",
		words: []string{"pull", "manifest"},
		match: all(`(?i)failed to pull(?: and unpack)? image \\*"?([^"\\\s]+)`, `\b(?:ErrImagePull|ImagePullBackOff)\b.*?image \\*"?([^"\\\s]+)`, `(?i)back-off pulling image \\*"?([^"\\\s]+)`, `\b(?:ErrImagePull|ImagePullBackOff)\b`, `pull access denied for ([^\s,]+)`, `manifest for (\S+) not found`, `PullImage \\*"([^"\\]+)\\*" failed`),
	},
	{
		name: "WrongArchitecture", state: report.StepAnomaly,
		means: "The program is not made for this node's processor, or is no program at all.",
		do:    "See for which platforms the new image was built; compare with the architecture of the nodes that fail.",
		words: []string{"exec format error"}, match: all(`(?i)exec format error`), about: path,
	},
	{
		name: "UnknownFlag", state: report.StepAnomaly,
		means: "The program does not know a flag that it is started with: the new version dropped it, or the old one does not have it yet.",
		do:    "Compare the arguments with the release notes of that version; roll back until they fit.",
		words: []string{"flag"}, match: all(`unknown (?:shorthand )?flag:? '?(--?[\w.-]+)`, `flag provided but not defined: (-[\w.-]+)`, `unrecognized (?:arguments?|option)s?:? '?(--?[\w.-]+)`),
	},
	{
		name: "ConfigSyntaxError", state: report.StepAnomaly,
		means: "A configuration file cannot be read as it is written: a wrong indent, bracket, field or directive.",
		do:    "The line names file and place. A ConfigMap is no part of a revision: rolling back does not bring its old content back.",
		words: []string{"yaml", "json", "directive", "syntax", "unmarshal", "decoding", "invalid character", "unexpected", "toml", "config"},
		not:   regexp.MustCompile(`(?i)syntax error at or near|syntax is ok`),
		match: all(`(/[^\s:"'\\]+)["']?: (?:error converting YAML to JSON: )?yaml: `, `unknown directive "([^"]+)"`, `\byaml: (?:line \d+|unmarshal errors|did not find|control characters|mapping values)`, `(?i)error (?:parsing|unmarshall?ing|decoding|converting|loading) (?:yaml|json|toml|config\S*)`, `invalid character '.{1,6}' (?:looking for|after|in)`,
			`unexpected end of JSON input`, `json: (?:unknown field|cannot unmarshal)`, `(?i)strict decoding error`, `unexpected "[^"]*"(?:, expecting .*)? in (/\S+:\d+)`, `(?i)\bsyntax errors?\b`, `(?i)configuration file (/\S+) test failed`, `(?i)failed to (?:parse|load|read) (?:the )?(?:kubelet )?config\w*(?: file)?\b`),
		over: []Name{"Panic"},
	},
	{
		name: "RBACMissing", state: report.StepAnomaly,
		means: "The service account lacks a right that this version needs: a new release often brings a ClusterRole that was not applied with it.",
		do:    "kubectl auth can-i as that account; apply the release's RBAC objects, or roll back to the version that the present ones fit.",
		words: []string{"forbidden"}, match: all(`User \\*"([^"\\]+\\*" cannot \w+ resource \\*"[^"\\]+)`, `is forbidden: User \\*"([^"\\]+)\\*" cannot`, `(?i)\bforbidden: .*RBAC`),
		not: regexp.MustCompile(`system:anonymous`),
	},
	{
		name: "AddressInUse", state: report.StepAnomaly,
		means: "Another process of the host holds the port: an old Pod that is not gone, a second agent, or a program outside Kubernetes.",
		do:    "ss -ltnp on the node shows who listens there; with maxSurge and a host port two Pods of the same set fight for it.",
		words: []string{"address already in use", "eaddrinuse", "address in use"}, match: all(`(?i)(?:tcp[46]?|udp[46]?|to|on|at) (\[?[\w.:*-]*\]?:\d{1,5})\b.*address (?:already )?in use`, `EADDRINUSE.*?(:+\d{1,5})\b`, `(?i)address (?:already )?in use:? \(?"?([\w.:*\[\]-]*:\d{1,5})`, `(?i)address already in use`, `\bEADDRINUSE\b`),
	},
	{
		name: "PermissionDenied", state: report.StepAnomaly,
		means: "The program may not do this on the node: a file's owner or mode, a missing capability or privilege, SELinux or AppArmor.",
		do:    "Compare securityContext and hostPath mounts of the two revisions; on the node, ls -lZ of the path.",
		words: []string{"permission denied", "not permitted", "eacces"}, match: all(`(?i)permission denied`, `(?i)operation not permitted`, `\bEACCES\b`), about: path,
		not: regexp.MustCompile(`\(publickey`),
	},
	{
		name: "FileNotFound", state: report.StepAnomaly,
		means: "A file or program that is expected is not there: a path that differs on this node, a mount that is missing, or a step before that did not run.",
		do:    "See whether the path comes from a hostPath, a ConfigMap or the image, and which revision began to expect it.",
		words: []string{"no such file", "not found in $path", "enoent"}, match: all(`(?i)no such file or directory`, `exec: \\*"([^"\\]+)\\*": executable file not found in \$PATH`, `\bENOENT\b`), about: path,
		not: regexp.MustCompile(`/sys/fs/cgroup/|/proc/\d+/|inotify_add_watch`),
	},
	{
		name: "Panic", state: report.StepAnomaly, weak: true,
		means: "The program gave up by itself: it crashed or met an error that it cannot go on with.",
		do:    "The lines around it say why; the run before the last restart (--previous) has them complete.",
		words: []string{"panic", "fatal", "sigsegv", "segfault", "segmentation fault", "traceback", "emerg", "f0", "f1"},
		match: all(`\bpanic: `, `^(?:.{0,60}\s)?fatal error: `, `\bSIGSEGV\b`, `(\S+)\[\d+\]: segfault at`, `Segmentation fault`, `Traceback \(most recent call last\)`, `\[emerg\]`, `(?:^|: )F[01]\d{3} \d\d:`, `\blevel=fatal\b`, `\[FATAL\]`, `"level":\s*"fatal"`),
	},
}

// ofConsole are what single lines of a command's output tell at a console.
var ofConsole = []sign{
	{
		name: "PacketsLost", state: report.StepAnomaly, console: true,
		means: "Packets to that host get lost: the way there, or this host's own network, is broken.",
		do:    "All lost: routes and neighbours (ip route, ip neigh). Some lost: the interface's errors (ethtool -S) and its MTU.",
		words: []string{"packet loss"}, match: all(`\b((?:100|[1-9]\d?)(?:\.\d+)?%) packet loss`),
	},
	{
		name: "InterfaceErrors", state: report.StepNotice, console: true,
		means: "The interface has counted errors or drops since the node booted; only a number that grows says something.",
		do:    "Run the same command again after ten seconds and compare.",
		words: []string{"err", "drop", "discard"}, match: all(`^\s*((?:rx|tx)\w*(?:err|drop|discard)\w*): [1-9]\d*$`),
	},
	{
		name: "ContainerRestarts", state: report.StepNotice, console: true,
		means: "This container has ended and was started again before.",
		do:    "crictl logs of exactly that container: its last lines say why.",
		words: []string{"exited"}, match: all(`\sExited\s+(\S+)\s+[1-9]\d*\s+[0-9a-f]{13}\b`),
	},
	{
		name: "APIAnswers", state: report.StepOK, console: true,
		means: "The API server answered from here: the way to it works, whatever else is wrong with the node.",
		do:    "So look at the kubelet and the runtime, not at the network.",
		words: []string{"ok", "unauthorized", "system:anonymous", "http/"}, match: all(`^ok$`, `^(?:livez|healthz|readyz) check passed$`, `^\s*"(?:message|reason)": "Unauthorized",?$`, `User \\?"system:anonymous\\?" cannot get path`, `^HTTP/[123](?:\.\d)? (?:200|401|403)\b`),
	},
}
