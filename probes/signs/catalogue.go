package signs

import (
	"regexp"

	"github.com/rollcall-k8s/rollcall/probes/report"
)

// catalogue holds every sign, the gravest first: what names a cause stands before
// what only follows from one. To teach the program another sign, add a row, and
// lines to its test that have it and lines that only look alike.
var catalogue = concat(ofNode, ofNetwork, ofProgram, ofConsole)

func concat(parts ...[]sign) (out []sign) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// ofNode are signs of the node itself: kernel, runtime, kubelet, disk, CNI files.
var ofNode = []sign{
	{
		name: "OutOfMemoryKill", state: report.StepAnomaly,
		means: "The kernel killed this process because memory ran out, of its container's limit or of the whole node.",
		do:    "See whether its memory limit or the node's memory is too small for the new revision; a rollback brings back what fitted.",
		words: []string{"kill", "oom"},
		match: all(`(?:[Oo]ut of memory|OOM).{0,40}?: Kill(?:ed)? process \d+,? \(([^)]+)\)`, `oom-kill:constraint=.*?\btask=([^,]+),pid=`, `has been killed by the OOM killer`),
	},
	{
		name: "CNIConfigInvalid", state: report.StepAnomaly,
		means: "There is a CNI configuration on the node and the container runtime cannot use it: no new Pod gets a network and the node says Ready=False.",
		do:    "Compare the file in /etc/cni/net.d with one on a healthy node; roll back the agent that wrote it, then replace its Pod there.",
		words: []string{"cni", "conflist"},
		match: all(`(?i)(/\S*/cni/net\.d/[^\s:"\\]+).{0,80}unsupported cniVersion`, `(?i)unsupported (?:cni (?:config |result )?version|cniVersion)`, `(?i)incompatible CNI versions`, `(?i)error (?:validating|loading|parsing) (?:CNI )?config(?:uration)?(?: list| file)?\b.*`,
			`(?i)(?:invalid|unexpected|unmarshal|parse?)\w*\b.{0,80}(/\S*/cni/net\.d/[^\s:"\\]+)`, `(?i)(/\S*/cni/net\.d/[^\s:"\\]+).{0,40}(?:invalid character|unexpected end of JSON|no plugins)`),
		over: []Name{"CNINotInitialized", "ConfigSyntaxError"},
	},
	{
		name: "CNIPluginMissing", state: report.StepAnomaly,
		means: "The CNI configuration names a plugin whose program is not on the node: new Pods get no network.",
		do:    "Look into /opt/cni/bin; the agent's install container must have run to its end. Roll back or replace the agent's Pod.",
		words: []string{"failed to find plugin"}, match: all(`failed to find plugin \\?"([^"\\]+)`),
		over: []Name{"SandboxNetworkFails"},
	},
	{
		name: "CNINotInitialized", state: report.StepAnomaly,
		means: "The node has no usable CNI configuration, so the kubelet lives and says Ready=False; Pods on the host network go on running.",
		do:    "The network agent writes that file: see why its Pod here did not, and roll back its revision. Restarting the kubelet changes nothing.",
		words: []string{"cni", "no networks found", "no network config found", "networkpluginnotready"},
		match: all(`cni plugin not initialized`, `cni config uninitialized`, `[Nn]o (?:network config|(?:valid )?networks) found in`, `reason:NetworkPluginNotReady`),
	},
	{
		name: "SandboxNetworkFails", state: report.StepAnomaly,
		means: "The CNI plugin is there and could not set up a Pod's network; the node stays Ready while its new Pods do not start.",
		do:    "Read what the plugin says at the end of the line; most often the network agent of this node does not answer, or has no addresses left.",
		words: []string{"sandbox", "plugin type=", "networkplugin cni"},
		match: all(`plugin type=\\*"([^"\\]+)\\*"(?: name=\S+)? failed \((?:add|delete)\)`, `failed to (?:setup|destroy) network for sandbox`, `networkPlugin cni failed to (?:set up|teardown) pod`),
	},
	{
		name: "RuntimeHangs", state: report.StepAnomaly,
		means: "The kubelet gets no list of containers in time (PLEG): the container runtime hangs or is overloaded, and the node turns NotReady.",
		do:    "Look at the runtime before the kubelet: journalctl -u containerd, the disk's load, the number of containers (crictl ps -a).",
		words: []string{"pleg"}, match: all(`(?i)PLEG is not healthy: pleg was last seen active`),
	},
	{
		name: "RuntimeNotAnswering", state: report.StepAnomaly,
		means: "The container runtime does not answer: nothing can be started, stopped or looked at on this node.",
		do:    "systemctl status containerd (or crio) and its journal; a full disk and a broken configuration are the usual causes.",
		words: []string{"runtime", ".sock", "containerd"},
		match: all(`from runtime service failed.*code = (?:Unavailable|DeadlineExceeded)`, `(?i)container runtime is down`, `(?i)container runtime sanity check failed`, `(?i)"Container runtime not ready"`,
			`(?i)((?:\S*/)?(?:containerd|crio|cri-dockerd|dockershim)\.sock)\b.*(?:refused|no such file|deadline ?exceeded|timeout)`, `(containerd|crio|docker)\.service: (?:Main process exited, code=(?:exited, status=[1-9]|dumped|killed)|Failed with result)`),
		over: []Name{"ConnectionRefused", "FileNotFound", "DeadlineExceeded", "NetworkTimeout"},
	},
	{
		name: "CgroupFails", state: report.StepAnomaly,
		means: "Kubelet or runtime cannot work with the node's control groups: containers are not started or not stopped.",
		do:    "Compare cgroupDriver of the kubelet with SystemdCgroup of the runtime, and the cgroup version with a healthy node's.",
		words: []string{"cgroup"}, not: regexp.MustCompile(`(?i)stats|summary|inotify|out of memory|oom-kill`),
		match: all(`(?i)cgroup driver: .* is different from`, `(?i)\b(?:failed|unable|cannot|could not)\b.{0,80}\bcgroups?\b`, `(?i)\bcgroups?\b.{0,60}(?:not mounted|: no such file|failed|timed out|Device or resource busy)`),
		over:  []Name{"FileNotFound", "DeadlineExceeded"},
	},
	{
		name: "TooManyOpenFiles", state: report.StepAnomaly,
		means: "A limit on open files or inotify watches is reached: programs cannot watch files or open connections, and some stop.",
		do:    "Compare fs.inotify.max_user_instances and max_user_watches (sysctl) and the unit's LimitNOFILE with what the new revision needs.",
		words: []string{"too many open files", "inotify", "emfile"}, match: all(`(?i)too many open files`, `(?i)inotify.{0,80}no space left on device`, `\bEMFILE\b`, `(?i)user limit on (?:the total number of )?inotify`),
		over: []Name{"DiskFull"},
	},
	{
		name: "DiskFull", state: report.StepAnomaly,
		means: "A file system of the node is full: logs, images and Pods cannot be written, and the kubelet evicts or stops.",
		do:    "df -h and df -i on the node; crictl rmi --prune frees images. Find what filled it: a new revision that logs much?",
		words: []string{"no space left", "enospc", "disk quota exceeded", "high threshold"}, match: all(`(?i)no space left on device`, `\bENOSPC\b`, `(?i)disk quota exceeded`, `(?i)image filesystem is over the high threshold`), about: path,
	},
	{
		name: "FilesystemReadOnly", state: report.StepAnomaly,
		means: "A file system can only be read: either the container's root is meant to be so, or the kernel remounted a broken disk.",
		do:    "dmesg tells of disk errors; without them look at readOnlyRootFilesystem and read-only mounts in the new revision.",
		words: []string{"read-only file system", "filesystem read-only"}, match: all(`(?i)read-only file system`, `(?i)remounting filesystem read-only`), about: path,
	},
	{
		name: "EvictionRunning", state: report.StepNotice,
		means: "The kubelet is short of this resource and evicts Pods to get it back.",
		do:    "See which Pod of the node uses it; a DaemonSet's Pod without requests goes early.",
		words: []string{"eviction manager"}, match: all(`(?i)eviction manager: (?:attempting to reclaim|must evict pod\(s\) to reclaim).*resourceName=\\?"?([\w.-]+)`, `(?i)eviction manager: must evict`, `(?i)eviction manager: attempting to reclaim`),
	},
	{
		name: "ConntrackWriteRefused", state: report.StepAnomaly,
		means: "kube-proxy may not write a conntrack limit of the node, and stops: Services do not work on this node.",
		do:    "Give it the right (privileged, in the host's network namespace), or set conntrack.maxPerCore to 0 where the host sets the limit.",
		words: []string{"conntrack"}, match: all(`(?i)conntrack\S*.*(?:permission denied|read-only file system|operation not permitted)`),
		over: []Name{"PermissionDenied", "FilesystemReadOnly"},
	},
	{
		name: "KernelTrouble", state: report.StepAnomaly,
		means: "The kernel itself is in trouble: it panicked, locked up or lost a disk. No rollback mends hardware, though a new driver or eBPF program can cause it.",
		do:    "Compare kernel and hardware with the nodes that are fine; reboot the node once its logs are saved.",
		words: []string{"kernel panic", "soft lockup", "hard lockup", "blocked for more than", "i/o error", "mce:"},
		match: all(`Kernel panic - not syncing`, `(?:soft|hard) lockup`, `task \S+ blocked for more than \d+ seconds`, `(?:Buffer )?I/O error(?:,| on) dev(?:ice)? (\w+)`, `mce: \[Hardware Error\]`),
	},
	{
		name: "LinkDown", state: report.StepAnomaly,
		means: "A network interface of the host lost its link or hangs.",
		do:    "ip link and ethtool for that interface; if many nodes lose it at once, ask for the switch before the rollout.",
		words: []string{"link is down", "link down", "netdev watchdog", "lost carrier"}, not: regexp.MustCompile(`\b(?:cali|veth|lxc|cni|flannel|docker|tunl|vxlan|nodelocaldns|kube-ipvs)[\w.-]*\b`),
		match: all(`(\w+):? (?:NIC )?Link is [Dd]own`, `(?i)NETDEV WATCHDOG: (\w+)`, `(\w+): [Ll]ost carrier`, `(\w+): Link DOWN`),
	},
	{
		name: "HostRouteRemoved", state: report.StepAnomaly,
		means: "A program removed a route of the host, the way to its default gateway: the node cuts itself off and turns Unknown.",
		do:    "Roll back what does so. On nodes that are cut off put the route back at their console (ip route add default via ...).",
		words: []string{"route"}, match: all(`(?i)\b(?:delet|remov)\w*\b[^"]{0,40}\broutes?\b[^"]{0,60}\bdefault\b`, `(?i)\b(?:delet|remov)\w*\b[^"]{0,40}\bdefault (?:route|gateway)`),
	},
	{
		name: "FirewallWriteFails", state: report.StepAnomaly,
		means: "Rules of the packet filter could not be written: Services or policies do not work on this node.",
		do:    "Read the rule that was refused; a missing kernel module and a mix of iptables-legacy and nft are the usual causes.",
		words: []string{"iptables", "xtables", "nft"}, match: all(`(?i)failed to execute ip6?tables-restore`, `(?i)ip6?tables-restore:? .*(?:failed|unable to initialize)`, `(?i)holding the xtables lock`, `(?i)\bnft\b.{0,60}: exit status [1-9]`),
	},
}

// ofNetwork are signs that something cannot be reached or is not trusted.
var ofNetwork = []sign{
	{
		name: "CertificateNotYetValid", state: report.StepAnomaly,
		means: "A certificate is valid only from a later time: a clock is wrong, most often this node's.",
		do:    "date and chronyc tracking on the node, beside the API server's time.",
		words: []string{"not yet valid"}, match: all(`is not yet valid: current time \S+ is before`, `certificate is not yet valid`),
		over: []Name{"CertificateExpired"},
	},
	{
		name: "CertificateExpired", state: report.StepAnomaly,
		means: "A certificate has expired: whoever uses it is refused, whatever was rolled out.",
		do:    "See whose it is (openssl x509 -noout -enddate) and renew it; for a kubelet the bootstrap or rotation has failed.",
		words: []string{"expired"}, match: all(`(?i)certificate has expired`, `certificate in (\S+) is expired`, `tls: expired certificate`),
	},
	{
		name: "CertificateUnknownAuthority", state: report.StepAnomaly,
		means: "A certificate is signed by an authority that is not trusted here: a changed CA bundle, or the address leads somewhere else.",
		do:    "Compare the CA bundle with a healthy node's, and whether the address or a proxy in between was changed by the new revision.",
		words: []string{"x509", "certificate", "tls"}, match: all(`x509: certificate signed by unknown authority`, `certificate problem: (?:self[- ]signed|unable to get local issuer)`, `tls: (?:unknown certificate authority|bad certificate)`), about: address,
	},
	{
		name: "CertificateWrongName", state: report.StepAnomaly,
		means: "The server's certificate is for another name or address than the one that was asked for.",
		do:    "Check the address in the new revision's configuration; a new VIP or host name must stand in the certificate.",
		words: []string{"x509", "certificate subject name"}, match: all(`x509: certificate is valid for .*?, not ([\w.:-]+)`, `x509: certificate is not valid for any names?`, `x509: cannot validate certificate for ([\w.:-]+)`, `no alternative certificate subject name matches`),
	},
	{
		name: "NameNotResolved", state: report.StepAnomaly,
		means: "A name could not be resolved: DNS does not answer this node, or the name is wrong.",
		do:    "If the name is in the cluster, look at CoreDNS and at this node's way to it; if it was just changed, at its spelling.",
		words: []string{"lookup ", "resolve", "name resolution", "no such host", "host not found", "eai_again"},
		match: all(`\blookup ([\w.-]+?)\.?(?: on \S+)?: .*(?:no such host|server misbehaving|i/o timeout|refused|no route|unreachable)`, `Could not resolve host: ([\w.-]+)`, `[Tt]emporary failure (?:in name resolution|resolving '?([\w.-]+))`, `host not found in upstream "([^"]+)"`, `\bEAI_AGAIN (\S+)`, `(?:no such host)`),
		over:  []Name{"ConnectionRefused", "NoRouteToHost", "NetworkTimeout", "NetworkUnreachable"},
	},
	{
		name: "ConnectionRefused", state: report.StepAnomaly,
		means: "The address was reached and nothing listens on that port: the network works, the program behind it does not run.",
		do:    "See what should listen there and whether it runs; for the API server's address, look at its load balancer or VIP.",
		words: []string{"refused"}, match: all(`(?i)(?:: |\(111: |: "|^|Connect\w* to \S+ (?:port \d+ )?failed: )connection refused\b`, `\bECONNREFUSED\b`, `\(os error 111\)`), about: address,
	},
	{
		name: "NoRouteToHost", state: report.StepAnomaly,
		means: "There is no way to the address: a route is missing, a neighbour does not answer, or a firewall refuses.",
		do:    "ip route and ip neigh on the node; if its default route or main interface changed with the rollout, that is the cause.",
		words: []string{"route to host", "host unreachable", "host is unreachable"}, match: all(`(?i)no route to host`, `(?i)destination host unreachable`, `(?i)host is unreachable`), about: address,
	},
	{
		name: "NetworkUnreachable", state: report.StepAnomaly,
		means: "The host has no route at all to that network: most often its default route is gone.",
		do:    "ip route on the node: is there a line with default? Put it back at the console, and roll back what removed it.",
		words: []string{"unreachable"}, match: all(`(?i)network is unreachable`, `(?i)destination net unreachable`), about: address,
	},
	{
		name: "CannotConnect", state: report.StepAnomaly,
		means: "No connection came about; this line does not tell whether it was refused or got lost.",
		do:    "ping the host and look at ip route: an answer means that nothing listens, none that the way is broken.",
		words: []string{"connect to"}, match: all(`\(7\) Failed to connect to .*(?:[Cc]ould(?:n't| not) connect)`), about: address,
	},
	{
		name: "NetworkTimeout", state: report.StepAnomaly,
		means: "Nobody answered in time: packets get lost on the way there or back, or the other side hangs.",
		do:    "From the same node, ping and curl that address; compare with a node that still runs the old revision.",
		words: []string{"timeout", "timed out"}, match: all(`(?i)\bi/o timeout`, `(?i)TLS handshake timeout`, `(?i)(?:connection|connect|operation|resolving|request) timed out`, `\(110: `, `(?i)timeout was reached`), about: address,
	},
	{
		name: "DeadlineExceeded", state: report.StepNotice,
		means: "Something took longer than it was allowed; the line does not say whether the network or the other side was slow.",
		do:    "Look at what was asked for: the API server, the runtime, a webhook or a probe.",
		words: []string{"deadline", "client.timeout"}, match: all(`(?i)context deadline exceeded`, `code = DeadlineExceeded`, `Client\.Timeout exceeded`), about: address,
	},
	{
		name: "CredentialsRefused", state: report.StepAnomaly,
		means: "The API server was reached and does not accept the credentials: a token or client certificate is missing, wrong or expired.",
		do:    "For a kubelet: its client certificate and bootstrap token; for a Pod: its mounted service account token and the node's clock.",
		words: []string{"unauthorized", "provide credentials", "must be logged in"}, match: all(`err=\\?"?Unauthorized`, `: Unauthorized$`, `asked for the client to provide credentials`, `You must be logged in to the server`),
	},
	{
		name: "BackendDown", state: report.StepAnomaly,
		means: "What this program sends to does not serve: it answers 5xx, or no instance of it is there.",
		do:    "Look at the workload behind that address: it may be the victim of the same nodes.",
		words: []string{"50", "upstream", "currently unable to handle"},
		match: all(`(?i)no (?:live|healthy) upstreams?`, `(?i)upstream prematurely closed`, `failed \(111: .*while connecting to upstream`, `" 50[0234] \d`, `\bHTTP/[123](?:\.\d)? 50[0234]\b`, `(?i)\b(?:status|status_?code|response_?code|code)"?[=: ]\s*"?50[0234]\b`,
			`\b50[234] (?:Bad Gateway|Service (?:Temporarily )?Unavailable|Gateway Time-?out)`, `the server is currently unable to handle the request`), about: address,
		over: []Name{"ConnectionRefused", "CannotConnect"},
	},
}
