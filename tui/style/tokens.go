// Package style holds every colour of the screen and the marks that stand beside
// them. To change a colour, change its token here; nothing else names one.
//
// Colours are the terminal's own sixteen: they follow the palette that the
// operator has chosen, on dark and on light backgrounds, and need no question to
// the terminal at start. Colour never carries meaning alone: each state has a
// mark as well, and the monochrome theme uses none.
package style

import (
	"image/color"

	"charm.land/lipgloss/v2"
)

// Theme names a set of tokens.
type Theme string

// The themes. Default is "" as well. Mono has no colour and is what NO_COLOR
// asks for; Contrast avoids everything faint and sets critical text in reverse.
const (
	Default  Theme = "default"
	Contrast Theme = "high-contrast"
	Mono     Theme = "mono"
)

// Themes lists the names that an operator may give.
func Themes() []string { return []string{string(Default), string(Contrast), string(Mono)} }

// Known tells whether t is a theme.
func Known(t Theme) bool { return t == "" || t == Default || t == Contrast || t == Mono }

// tokens are what a theme decides.
type tokens struct {
	good, notice, bad, unknown color.Color
	accent                     color.Color // keys, cursor, title
	write, practice            color.Color
	faint                      bool // quiet text may be faint
	reverseBad                 bool // critical badges in reverse
}

var themes = map[Theme]tokens{
	Default: {
		good: lipgloss.Green, notice: lipgloss.Yellow, bad: lipgloss.Red, unknown: lipgloss.Magenta,
		accent: lipgloss.Cyan, write: lipgloss.Yellow, practice: lipgloss.Magenta,
		faint: true, reverseBad: true,
	},
	Contrast: {
		good: lipgloss.BrightGreen, notice: lipgloss.BrightYellow, bad: lipgloss.BrightRed, unknown: lipgloss.BrightMagenta,
		accent: lipgloss.BrightCyan, write: lipgloss.BrightYellow, practice: lipgloss.BrightMagenta,
		reverseBad: true,
	},
	Mono: {
		good: lipgloss.NoColor{}, notice: lipgloss.NoColor{}, bad: lipgloss.NoColor{}, unknown: lipgloss.NoColor{},
		accent: lipgloss.NoColor{}, write: lipgloss.NoColor{}, practice: lipgloss.NoColor{},
		faint: true, reverseBad: true,
	},
}
