package report

// Code names one finding. A code is a promise: it is emitted only when its
// evidence was read, and the evidence travels with it. Codes are never renamed.
type Code string

// Severity grades a finding.
type Severity string

// The severities: Critical, nodes, Pods or control are being lost; Warning, it
// blocks or hides a problem; Info, worth knowing.
const (
	Critical Severity = "critical"
	Warning  Severity = "warning"
	Info     Severity = "info"
)

// Rank orders severities, the worst highest.
func (s Severity) Rank() int {
	switch s {
	case Critical:
		return 3
	case Warning:
		return 2
	case Info:
		return 1
	}
	return 0
}

// ParseSeverity reads a threshold such as that of --fail-on.
func ParseSeverity(s string) (Severity, bool) {
	switch v := Severity(s); v {
	case Critical, Warning, Info:
		return v, true
	}
	return "", false
}

// Codes about a rollout.
const (
	RolloutSpreading          Code = "RolloutSpreading"
	RolloutProgressing        Code = "RolloutProgressing"
	RolloutSlow               Code = "RolloutSlow"
	RolloutStuck              Code = "RolloutStuck"
	ProgressDeadlineExceeded  Code = "ProgressDeadlineExceeded"
	RolloutNotObserved        Code = "RolloutNotObserved"
	OnDeletePending           Code = "OnDeletePending"
	RolloutPaused             Code = "RolloutPaused"
	BudgetHeldByNodes         Code = "BudgetHeldByNodes"
	SurgePortConflict         Code = "SurgePortConflict"
	SurgeNoRoom               Code = "SurgeNoRoom"
	AvailabilityClockSkew     Code = "AvailabilityClockSkew"
	RevisionReverted          Code = "RevisionReverted"
	DuplicateRevisions        Code = "DuplicateRevisions"
	NoRollbackHistory         Code = "NoRollbackHistory"
	MultipleRevisionsInFlight Code = "MultipleRevisionsInFlight"
	CompanionSkew             Code = "CompanionSkew"
	ConfigChangedInPlace      Code = "ConfigChangedInPlace"
)

// Pod codes.
const (
	ImageNotFound          Code = "ImageNotFound"
	ImagePullUnauthorized  Code = "ImagePullUnauthorized"
	RegistryUnreachable    Code = "RegistryUnreachable"
	ImagePullFailed        Code = "ImagePullFailed"
	ContainerConfigMissing Code = "ContainerConfigMissing"
	VolumeMountFailed      Code = "VolumeMountFailed"
	SandboxFailed          Code = "SandboxFailed"
	InitContainerFailed    Code = "InitContainerFailed"
	CrashLoop              Code = "CrashLoop"
	OutOfMemory            Code = "OutOfMemory"
	LivenessKilled         Code = "LivenessKilled"
	StartupProbeFailing    Code = "StartupProbeFailing"
	ReadinessFailing       Code = "ReadinessFailing"
	ReadinessGateWaiting   Code = "ReadinessGateWaiting"
	PodEvicted             Code = "PodEvicted"
	PodPreempted           Code = "PodPreempted"
	StuckTerminating       Code = "StuckTerminating"
	NodeShutdownPod        Code = "NodeShutdownPod"
	PodOnMissingNode       Code = "PodOnMissingNode"
)

// Scheduling codes.
const (
	InsufficientResources  Code = "InsufficientResources"
	UntoleratedTaint       Code = "UntoleratedTaint"
	NodeAffinityMismatch   Code = "NodeAffinityMismatch"
	HostPortConflict       Code = "HostPortConflict"
	VolumeTopologyConflict Code = "VolumeTopologyConflict"
	PodSpreadConflict      Code = "PodSpreadConflict"
	NodesCordoned          Code = "NodesCordoned"
	SchedulerSilent        Code = "SchedulerSilent"
	SchedulerDown          Code = "SchedulerDown"
)

// Creation codes.
const (
	QuotaExceeded               Code = "QuotaExceeded"
	AdmissionDenied             Code = "AdmissionDenied"
	AdmissionWebhookUnavailable Code = "AdmissionWebhookUnavailable"
	PodSecurityViolation        Code = "PodSecurityViolation"
	ServiceAccountMissing       Code = "ServiceAccountMissing"
	PriorityClassMissing        Code = "PriorityClassMissing"
)

// Coverage codes.
const (
	NoEligibleNodes         Code = "NoEligibleNodes"
	NodeNotCovered          Code = "NodeNotCovered"
	NodeMisscheduled        Code = "NodeMisscheduled"
	MisscheduledStatusStale Code = "MisscheduledStatusStale"
	SelectorOverlap         Code = "SelectorOverlap"
)

// Node codes.
const (
	NodeNeverReady         Code = "NodeNeverReady"
	NoNetworkAgent         Code = "NoNetworkAgent"
	NodeLeaseLate          Code = "NodeLeaseLate"
	NodeNetworkNotReady    Code = "NodeNetworkNotReady"
	NodeRuntimeDown        Code = "NodeRuntimeDown"
	NodeNotReady           Code = "NodeNotReady"
	NodeUnreachable        Code = "NodeUnreachable"
	NodeLeaseStale         Code = "NodeLeaseStale"
	NodePressure           Code = "NodePressure"
	NodeNetworkUnavailable Code = "NodeNetworkUnavailable"
	NodeCordoned           Code = "NodeCordoned"
	NodeShuttingDown       Code = "NodeShuttingDown"
	NodeRebooted           Code = "NodeRebooted"
	NodeFlapping           Code = "NodeFlapping"
	KubeletRestarted       Code = "KubeletRestarted"
	NodeBeingRemoved       Code = "NodeBeingRemoved"
	ZoneOutage             Code = "ZoneOutage"
)

// Codes of what is at stake.
const (
	ControlPlaneAtRisk      Code = "ControlPlaneAtRisk"
	ControllerManagerDown   Code = "ControllerManagerDown"
	APIPathAtRisk           Code = "APIPathAtRisk"
	WebhookOnBrokenNodes    Code = "WebhookOnBrokenNodes"
	ServiceWithoutEndpoints Code = "ServiceWithoutEndpoints"
	ClusterDNSDegraded      Code = "ClusterDNSDegraded"
	EvictionPending         Code = "EvictionPending"
)

// Ownership codes.
const (
	ManagedByOperator Code = "ManagedByOperator"
	ManagedByHelm     Code = "ManagedByHelm"
	ManagedByGitOps   Code = "ManagedByGitOps"
)

// Risk codes.
const (
	CriticalDaemonSetAutoUpdates Code = "CriticalDaemonSetAutoUpdates"
	BudgetTooWide                Code = "BudgetTooWide"
	NoReadinessProbe             Code = "NoReadinessProbe"
	NoMinReadySeconds            Code = "NoMinReadySeconds"
	NoPriorityClass              Code = "NoPriorityClass"
	NoResourceRequests           Code = "NoResourceRequests"
	ToleratesEverything          Code = "ToleratesEverything"
	BroadHostPath                Code = "BroadHostPath"
	PrivilegedContainer          Code = "PrivilegedContainer"
	HostPortBlocksSurge          Code = "HostPortBlocksSurge"
	ShortGracePeriod             Code = "ShortGracePeriod"
	NoRevisionHistory            Code = "NoRevisionHistory"
	MutableImageTag              Code = "MutableImageTag"
	PDBDoesNotCoverDaemonSet     Code = "PDBDoesNotCoverDaemonSet"
	InsufficientHeadroom         Code = "InsufficientHeadroom"
	UpdateTakesLong              Code = "UpdateTakesLong"
	ClusterNodesNotReady         Code = "ClusterNodesNotReady"
	ClusterNodesCordoned         Code = "ClusterNodesCordoned"
)

// Severity is the code's severity where nothing particular is known of the case:
// rootCause tells whether the finding is the root cause of a verdict.
func (c Code) Severity(rootCause bool) Severity {
	switch c {
	case RolloutProgressing, RolloutSlow, OnDeletePending, RolloutPaused, KubeletRestarted,
		NodeBeingRemoved, MisscheduledStatusStale, NodeCordoned:
		return Info
	case RolloutSpreading, ProgressDeadlineExceeded:
		return Critical
	}
	switch c.group() {
	case podGroup, schedulingGroup, creationGroup, nodeGroup:
		if rootCause {
			return Critical
		}
		return Warning
	case stakeGroup:
		return Critical
	case ownershipGroup, riskGroup:
		return Info
	}
	return Warning
}

type group int

const (
	rolloutGroup group = iota
	podGroup
	schedulingGroup
	creationGroup
	coverageGroup
	nodeGroup
	stakeGroup
	ownershipGroup
	riskGroup
)

func (c Code) group() group { return groups[c] }

var groups = func() map[Code]group {
	m := map[Code]group{}
	for g, codes := range map[group][]Code{
		rolloutGroup:    {RolloutSpreading, RolloutProgressing, RolloutSlow, RolloutStuck, ProgressDeadlineExceeded, RolloutNotObserved, OnDeletePending, RolloutPaused, BudgetHeldByNodes, SurgePortConflict, SurgeNoRoom, AvailabilityClockSkew, RevisionReverted, DuplicateRevisions, NoRollbackHistory, MultipleRevisionsInFlight, CompanionSkew, ConfigChangedInPlace},
		podGroup:        {ImageNotFound, ImagePullUnauthorized, RegistryUnreachable, ImagePullFailed, ContainerConfigMissing, VolumeMountFailed, SandboxFailed, InitContainerFailed, CrashLoop, OutOfMemory, LivenessKilled, StartupProbeFailing, ReadinessFailing, ReadinessGateWaiting, PodEvicted, PodPreempted, StuckTerminating, NodeShutdownPod, PodOnMissingNode},
		schedulingGroup: {InsufficientResources, UntoleratedTaint, NodeAffinityMismatch, HostPortConflict, VolumeTopologyConflict, PodSpreadConflict, NodesCordoned, SchedulerSilent, SchedulerDown},
		creationGroup:   {QuotaExceeded, AdmissionDenied, AdmissionWebhookUnavailable, PodSecurityViolation, ServiceAccountMissing, PriorityClassMissing},
		coverageGroup:   {NoEligibleNodes, NodeNotCovered, NodeMisscheduled, MisscheduledStatusStale, SelectorOverlap},
		nodeGroup:       {NodeNeverReady, NoNetworkAgent, NodeLeaseLate, NodeNetworkNotReady, NodeRuntimeDown, NodeNotReady, NodeUnreachable, NodeLeaseStale, NodePressure, NodeNetworkUnavailable, NodeCordoned, NodeShuttingDown, NodeRebooted, NodeFlapping, KubeletRestarted, NodeBeingRemoved, ZoneOutage},
		stakeGroup:      {ControlPlaneAtRisk, ControllerManagerDown, APIPathAtRisk, WebhookOnBrokenNodes, ServiceWithoutEndpoints, ClusterDNSDegraded, EvictionPending},
		ownershipGroup:  {ManagedByOperator, ManagedByHelm, ManagedByGitOps},
		riskGroup:       {CriticalDaemonSetAutoUpdates, BudgetTooWide, NoReadinessProbe, NoMinReadySeconds, NoPriorityClass, NoResourceRequests, ToleratesEverything, BroadHostPath, PrivilegedContainer, HostPortBlocksSurge, ShortGracePeriod, NoRevisionHistory, MutableImageTag, PDBDoesNotCoverDaemonSet, InsufficientHeadroom, UpdateTakesLong, ClusterNodesNotReady, ClusterNodesCordoned},
	} {
		for _, c := range codes {
			m[c] = g
		}
	}
	return m
}()

// Known tells whether c belongs to the vocabulary.
func (c Code) Known() bool { _, ok := groups[c]; return ok }

// IsNode tells whether c is about a node's own health.
func (c Code) IsNode() bool { return c.group() == nodeGroup && c.Known() }

// IsPod tells whether c is about what is wrong with a Pod.
func (c Code) IsPod() bool { return c.group() == podGroup && c.Known() }

// IsRisk tells whether c is about what makes a rollout dangerous.
func (c Code) IsRisk() bool { return c.group() == riskGroup && c.Known() }
