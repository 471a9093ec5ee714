// Package practice is the embedded practice cluster: an API server in memory
// (package api), the cluster around it (package sim), and incidents to be solved on
// it. A new incident is a new file with one function, and one line in Incidents.
//
// A cluster has a past: it was installed weeks before the incident by the very
// controllers that run it, so its revisions, ages and managers are real ones. Its
// clock begins at Epoch and moves only when it is stepped.
package practice
