package probes

import (
	"math"
	"slices"
	"time"
)

// fisher is the one-sided p-value of Fisher's exact test on the table
//
//	fell  did not
//	a     b        reached
//	c     d        not reached
//
// the probability of at least a nodes among the reached ones if being reached made
// no difference.
func fisher(a, b, c, d int) float64 {
	n, reached, fell := a+b+c+d, a+b, a+c
	if n == 0 || reached == 0 || fell == 0 {
		return 1
	}
	choose := func(n, k int) float64 {
		l := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
		return l(n) - l(k) - l(n-k)
	}
	all := choose(n, fell)
	p := 0.0
	for k := a; k <= min(reached, fell); k++ {
		if fell-k <= n-reached {
			p += math.Exp(choose(reached, k) + choose(n-reached, fell-k) - all)
		}
	}
	return min(p, 1)
}

func ratio(part, rest int) *float64 {
	if part+rest == 0 {
		return nil
	}
	v := float64(part) / float64(part+rest)
	return &v
}

func value(p *float64, absent float64) float64 {
	if p == nil {
		return absent
	}
	return *p
}

// interquartile is the distance between the quartiles; 0 for fewer than two values.
func interquartile(v []time.Duration) time.Duration {
	if len(v) < 2 {
		return 0
	}
	s := slices.Clone(v)
	slices.Sort(s)
	return s[(3*(len(s)-1)+2)/4] - s[(len(s)-1)/4]
}

// span is the distance between the first and the last of some moments.
func span(t []time.Time) time.Duration {
	if len(t) == 0 {
		return 0
	}
	lo, hi := t[0], t[0]
	for _, x := range t {
		if x.Before(lo) {
			lo = x
		}
		if x.After(hi) {
			hi = x
		}
	}
	return hi.Sub(lo)
}

// simultaneous is the largest share of moments inside any window of that width.
func simultaneous(t []time.Time, width time.Duration) float64 {
	if len(t) == 0 {
		return 0
	}
	s := slices.Clone(t)
	slices.SortFunc(s, time.Time.Compare)
	most, from := 0, 0
	for to := range s {
		for s[to].Sub(s[from]) > width {
			from++
		}
		most = max(most, to-from+1)
	}
	return float64(most) / float64(len(s))
}

// kendall is Kendall's tau between two orders of the same things: 1 where they
// agree, -1 where one is the other reversed. Of very many, evenly spaced ones are taken.
func kendall(x, y []time.Time) float64 {
	const most = 300
	if step := (len(x) + most - 1) / most; step > 1 {
		var a, b []time.Time
		for i := 0; i < len(x); i += step {
			a, b = append(a, x[i]), append(b, y[i])
		}
		x, y = a, b
	}
	n := len(x)
	if n < 2 {
		return 0
	}
	sum := 0
	for i := range n {
		for j := i + 1; j < n; j++ {
			sum += x[i].Compare(x[j]) * y[i].Compare(y[j])
		}
	}
	return float64(sum) / float64(n*(n-1)/2)
}
