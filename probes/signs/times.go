package signs

import (
	"regexp"
	"strconv"
	"time"
)

// stamp is a form in which programs write the time.
type stamp struct {
	find    *regexp.Regexp
	layouts []string
}

// stamps are tried in this order: the API server's own time before each line of a
// log comes first, and is the cluster's; a time without a zone is taken as UTC,
// which nodes nearly always run in.
var stamps = []stamp{
	{regexp.MustCompile(`\b(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d))`), []string{time.RFC3339Nano, "2006-01-02T15:04:05Z0700"}},
	{regexp.MustCompile(`\b(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)`), []string{"2006-01-02 15:04:05", "2006-01-02T15:04:05"}},
	{regexp.MustCompile(`\b(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d)`), []string{"2006/01/02 15:04:05"}},
	{regexp.MustCompile(`\[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\]`), []string{"02/Jan/2006:15:04:05 -0700"}},
	{regexp.MustCompile(`\b([A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})`), []string{"Mon Jan _2 15:04:05 2006"}},
}

// Forms without a year: klog's I0703 02:10:12.123 and syslog's Jul  3 02:10:12.
var yearless = []stamp{
	{regexp.MustCompile(`(?:^|[ :])[IWEF](\d{4} \d\d:\d\d:\d\d)`), []string{"0102 15:04:05"}},
	{regexp.MustCompile(`^([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)`), []string{"Jan _2 15:04:05"}},
}

var epoch = regexp.MustCompile(`"(?:ts|time)":\s*(1\d{9})(?:\.\d+)?[,}]`)

// where a line's time is looked for: later ones are what the line is about.
const stampWithin = 120

// lineTime is the time that a line carries, zero without one.
func lineTime(line string, asOf time.Time) time.Time {
	head := line[:min(len(line), stampWithin)]
	for _, s := range stamps {
		if t, ok := s.parse(head); ok && t.Year() >= 2000 && t.Year() < 2100 {
			return t
		}
	}
	if m := epoch.FindStringSubmatch(line); m != nil {
		if n, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			return time.Unix(n, 0).UTC()
		}
	}
	if asOf.IsZero() {
		return time.Time{}
	}
	for _, s := range yearless {
		if t, ok := s.parse(head); ok {
			return inYear(t, asOf.UTC())
		}
	}
	return time.Time{}
}

func (s stamp) parse(head string) (time.Time, bool) {
	m := s.find.FindStringSubmatch(head)
	if m == nil {
		return time.Time{}, false
	}
	for _, l := range s.layouts {
		if t, err := time.Parse(l, m[1]); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// inYear puts a time without a year into the last year in which it was not later
// than a day after asOf.
func inYear(t, asOf time.Time) time.Time {
	at := func(year int) time.Time {
		return time.Date(year, t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
	}
	out := at(asOf.Year() + 1)
	for out.After(asOf.AddDate(0, 0, 1)) {
		out = at(out.Year() - 1)
	}
	return out
}
