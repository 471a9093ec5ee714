package report

// StakeTopic is what a Stake is about.
type StakeTopic string

// The topics, in the order in which a report lists them.
const (
	StakeControlPlane      StakeTopic = "ControlPlane" // its nodes, and etcd's quorum
	StakeAPIPath           StakeTopic = "APIPath"      // the address at which this program reaches the API server
	StakeControllerManager StakeTopic = "ControllerManager"
	StakeScheduler         StakeTopic = "Scheduler"
	StakeDNS               StakeTopic = "ClusterDNS"
	StakeServices          StakeTopic = "Services"
	StakeWebhooks          StakeTopic = "Webhooks"
	StakeEvictions         StakeTopic = "Evictions"
)

// Stake says of one thing that rests on nodes whether failing nodes, or a rollout
// that breaks nodes, take it away. What is lost is a finding as well; a Stake also
// says what is fine and what could not be looked at.
type Stake struct {
	Topic StakeTopic `json:"topic"`
	// State is OK, Notice, Anomaly, Unknown, or "" for what is neither good nor bad.
	State StepState `json:"state"`
	Text  Text      `json:"text"` // a sentence
	// Brief is the same in few words, for a line that it shares with others; "" where
	// there is nothing to say in so few.
	Brief Text `json:"brief,omitempty"`
	// At is when it happens next: of Evictions, the earliest one. Null where nothing is
	// known to come.
	At *Time `json:"at,omitempty"`
}

// Stake returns what the report says of a topic, or nil.
func (r *Report) Stake(t StakeTopic) *Stake {
	for i := range r.AtStake {
		if r.AtStake[i].Topic == t {
			return &r.AtStake[i]
		}
	}
	return nil
}
