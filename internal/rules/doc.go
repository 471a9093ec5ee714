// Package rules holds the tests of what must stay true of the whole tree: who may
// import whom, how files are named and how long they are. It has no code.
package rules
