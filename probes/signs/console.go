package signs

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// What only several lines of a console's text tell together.

var (
	routeLine   = regexp.MustCompile(`^(?:[\da-fA-F.:]+(?:/\d+)?|blackhole \S+) (?:via \S+ )?(?:dev \S+ |proto \S+ ).*(?:proto|scope|src|metric)`)
	defaultLine = regexp.MustCompile(`^default (?:via|dev|proto|nhid)\b`)
	emptyFolder = regexp.MustCompile(`^total 0$`)
	cniFolder   = regexp.MustCompile(`^(/\S*cni/(?:net\.d|bin)):$`)
	notAfter    = regexp.MustCompile(`^notAfter=(.+)$`)
	usedUp      = regexp.MustCompile(`^(\S+)\s+\S+\s+\S+\s+\S+\s+(?:9[89]|100)%\s+(/\S*)$`)
)

// blocks looks at the output of commands as a whole.
func (r *reader) blocks(raw []string) {
	routes, first, standard, folder := 0, "", false, ""
	for _, l := range raw {
		line := strings.TrimRight(string(report.Clean(l)), " ")
		switch {
		case defaultLine.MatchString(line):
			standard = true
		case routeLine.MatchString(line):
			if routes++; first == "" {
				first = line
			}
		}
		if m := usedUp.FindStringSubmatch(line); m != nil && !strings.HasPrefix(m[1], "/dev/loop") {
			r.block("DiskFull", m[2], line)
		}
		if m := notAfter.FindStringSubmatch(line); m != nil {
			r.expiry(m[1], line)
		}
		if folder != "" && emptyFolder.MatchString(line) {
			r.tell(emptyCNI, folder, folder+": "+line)
		}
		folder = ""
		if m := cniFolder.FindStringSubmatch(line); m != nil {
			folder = m[1]
		}
	}
	if routes > 0 && !standard {
		r.tell(noDefaultRoute, "", first)
	}
}

// expiry is what openssl prints of a certificate's end.
func (r *reader) expiry(end, line string) {
	t, err := time.Parse("Jan _2 15:04:05 2006 MST", end)
	if err == nil && !r.o.AsOf.IsZero() && t.Before(r.o.AsOf) {
		r.block("CertificateExpired", fmt.Sprintf("since %s UTC", t.UTC().Format("2006-01-02 15:04")), line)
	}
}

// block counts a sign of the catalogue.
func (r *reader) block(name Name, about, line string) {
	for i := range catalogue {
		if catalogue[i].name == name {
			r.found(&catalogue[i], about, line, time.Time{})
		}
	}
}

func (r *reader) tell(s sign, about, line string) {
	r.found(&s, about, line, time.Time{})
}

var noDefaultRoute = sign{
	name: "NoDefaultRoute", state: report.StepAnomaly,
	means: "Among the routes that were pasted is no default route: the node reaches nothing outside its own networks.",
	do:    "If ip route was pasted whole, put the route back (ip route add default via ...) and roll back what removed it.",
}

var emptyCNI = sign{
	name: "CNIFolderEmpty", state: report.StepAnomaly,
	means: "The node's CNI folder is empty: no new Pod can get a network, and the node says Ready=False.",
	do:    "The network agent's install container fills it: see its log, and roll back its revision.",
}
