package kube

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/action"
)

var _ action.Logs = (*Connection)(nil)

// Logs is the connection's, so that whoever has its API can read logs too.
func (a API) Logs(ctx context.Context, q action.LogRequest) (action.Log, error) {
	return a.c.Logs(ctx, q)
}

// logCeiling is the most that is taken from a kubelet, before the last Bytes are kept.
const logCeiling = 4 << 20

// Logs reads the end of a log once. The errors are those of package action.
func (c *Connection) Logs(ctx context.Context, q action.LogRequest) (action.Log, error) {
	lines, limit := bounded(q.Lines, 100, 5000), bounded(q.Bytes, 64<<10, 1<<20)
	r := c.REST(corev1.SchemeGroupVersion).Get().Namespace(q.Namespace).Resource("pods").Name(q.Pod).SubResource("log").
		Param("container", q.Container).Param("timestamps", "true").
		Param("tailLines", strconv.Itoa(lines)).Param("limitBytes", strconv.Itoa(logCeiling))
	verb := "read the log of container " + q.Container + " in"
	if q.Previous {
		r.Param("previous", "true")
		verb = "read the previous log of container " + q.Container + " in"
	}
	ref := action.Ref{Version: "v1", Resource: "pods", Kind: "Pod", Namespace: q.Namespace, Name: q.Pod}
	body, err := r.Stream(ctx)
	if err != nil {
		return action.Log{}, c.API().translate(verb, ref, err)
	}
	defer body.Close()
	log, err := tail(io.LimitReader(body, logCeiling), limit)
	if err != nil {
		return log, c.API().translate(verb, ref, err)
	}
	return log, nil
}

// tail keeps the last lines that fit in limit bytes.
func tail(r io.Reader, limit int) (action.Log, error) {
	var out action.Log
	b := bufio.NewReaderSize(r, 64<<10)
	size := 0
	for {
		line, err := b.ReadString('\n')
		if line != "" {
			t := report.Clean(line)
			out.Lines = append(out.Lines, t)
			size += len(t)
		}
		for size > limit && len(out.Lines) > 1 {
			size -= len(out.Lines[0])
			out.Lines, out.Cut = out.Lines[1:], true
		}
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, fmt.Errorf("reading the log: %w", err)
		}
	}
}

func bounded(n, unset, most int) int {
	if n <= 0 {
		return unset
	}
	return min(n, most)
}
