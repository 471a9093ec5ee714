package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rollcall-k8s/rollcall/internal/kube"
	"github.com/rollcall-k8s/rollcall/internal/watch"
	"github.com/rollcall-k8s/rollcall/probes"
	"github.com/rollcall-k8s/rollcall/probes/report"
	"github.com/rollcall-k8s/rollcall/runbook/incident"
	"github.com/rollcall-k8s/rollcall/tui"
	"github.com/rollcall-k8s/rollcall/tui/style"
)

// screenOptions are how the terminal is drawn.
type screenOptions struct {
	theme       string
	noAltScreen bool
	noMouse     bool
}

func (o *screenOptions) flags(fs *pflag.FlagSet) {
	fs.StringVar(&o.theme, "theme", string(style.Default), "Colours of the screen: "+strings.Join(style.Themes(), ", "))
	fs.BoolVar(&o.noAltScreen, "no-alt-screen", false, "Draw below the prompt and leave the last picture there")
	fs.BoolVar(&o.noMouse, "no-mouse", false, "Leave the mouse to the terminal, so that it selects text")
}

// check refuses a theme that is not there, whether or not a screen will open.
func (o *screenOptions) check() error {
	if !style.Known(style.Theme(o.theme)) {
		return usagef("unknown theme %q: %s are known", o.theme, strings.Join(style.Themes(), ", "))
	}
	return nil
}

// open shows the incident until the operator leaves it.
func (o *screenOptions) open(ctx context.Context, c *composition, target *report.WorkloadKey) error {
	theme := style.Theme(o.theme)
	if os.Getenv("NO_COLOR") != "" {
		theme = style.Mono
	}
	loop, err := c.loop()
	if err != nil {
		return err
	}
	t := tui.Options{Clock: c.clock, Theme: theme, NoAltScreen: o.noAltScreen, NoMouse: o.noMouse, NotesPath: c.notesPath()}
	if target != nil {
		t.Open = &incident.OpenWorkload{Workload: *target}
	}
	return tui.Run(ctx, loop, t)
}

// openScreen opens the terminal on a cluster.
func (a *app) openScreen(ctx context.Context, o *triageOptions, t *target) error {
	// A credential plugin may have to ask: that is before the screen is taken.
	conn, err := a.connect(ctx)
	if conn == nil && !unreachable(err) {
		return err // nothing that trying again would change
	}
	namespace := ""
	if !o.allNamespaces {
		namespace = o.namespace()
	}
	l := &late{connect: a.connect, watch: watch.Config{Namespace: namespace, NodeGrace: a.nodeGrace, Logger: a.logger}}
	defer l.Close()
	name := a.kube.Overrides.CurrentContext
	if conn != nil {
		l.established(ctx, conn)
		name = conn.Context
	} else {
		l.identity = incident.Identity{Context: report.Clean(name), ReadOnly: a.kube.ReadOnly}
	}
	journal := a.openJournal(name)
	defer journal.Close()
	c := &composition{source: l, api: l, want: l.Want, retry: l.Retry, identity: l.Identify(), identify: l.Identify, journal: journal,
		clock: wallClock{}, started: time.Now(), options: probes.Options{Namespace: namespace}}
	var key *report.WorkloadKey
	if t != nil {
		k := t.key(namespace)
		if conn != nil {
			k = t.key(conn.Namespace)
		}
		key, c.options.Namespace = &k, ""
	}
	return o.screen.open(ctx, c, key)
}

// unreachable tells of an error that may pass: the configuration is sound, the API
// server does not answer as it should.
func unreachable(err error) bool {
	var c *kube.ConnectError
	return errors.As(err, &c) && c.On != ""
}
