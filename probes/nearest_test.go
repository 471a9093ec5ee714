package probes

import "testing"

func TestASlipOfTheKeyboardIsToldFromAnotherName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"agnet", "agent", true}, {"storge", "storage", true}, {"workers", "worker", true}, {"GPU", "gpu", true}, {"node_pool", "node-pool", true},
		{"nodepool", "node-pool", true}, {"prd", "prod", true}, {"monitorign", "monitoring", true}, {"ingress-contoller", "ingress-controller", true},
		{"arm64", "amd64", false}, {"pool-a", "pool-b", false}, {"v1", "v2", false}, {"gpu-a10", "gpu-a100", false}, {"east", "west", false},
		{"zone-1", "zone-2", false}, {"gold", "cold", false}, {"blue", "green", false}, {"true", "false", false}, {"windows", "linux", false}, {"", "x", false}, {"same", "same", false},
		{"web", "db", false}, {"m5.large", "m6.large", false},
	} {
		if got := resembles(tt.a, tt.b); got != tt.want || resembles(tt.b, tt.a) != tt.want {
			t.Errorf("%q and %q: %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestTheNearestLabelIsOneThatWasMeant(t *testing.T) {
	t.Parallel()
	have := labelSet{
		"node-role/agent":             {"": 5},
		"pool":                        {"general": 9, "gpu-nodes": 2, "storage": 1},
		"kubernetes.io/os":            {"linux": 12},
		"kubernetes.io/arch":          {"amd64": 12},
		"topology.kubernetes.io/zone": {"zone-a": 6, "zone-b": 6},
		"accelerator":                 {"true": 2},
	}
	for _, tt := range []struct {
		name   string
		key    string
		values []string
		want   string
		slip   bool
	}{
		{"letters of the key swapped", "node-role/agnet", []string{""}, "node-role/agent", true},
		{"a letter of the value missing", "pool", []string{"genral"}, "pool=general", true},
		{"an older name of the key", "beta.kubernetes.io/os", []string{"linux"}, "kubernetes.io/os=linux", true},
		{"yes said otherwise", "accelerator", []string{"yes"}, "accelerator=true", true},
		{"a key that only must exist", "acelerator", nil, "accelerator=true", true},
		{"the beginning of a value", "pool", []string{"gpu-nod"}, "pool=gpu-nodes", false},
		{"another architecture", "kubernetes.io/arch", []string{"arm64"}, "", false},
		{"another system", "kubernetes.io/os", []string{"windows"}, "", false},
		{"another zone", "topology.kubernetes.io/zone", []string{"zone-c"}, "", false},
		{"nothing like it", "nvidia.com/gpu.present", []string{"true"}, "", false},
		{"a pool that is scaled to nothing", "pool", []string{"web"}, "", false},
		{"it is there", "pool", []string{"storage"}, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, ok := have.nearest(tt.key, tt.values)
			if ok != (tt.want != "") || ok && (got.String() != tt.want || got.slip != tt.slip) {
				t.Errorf("nearest to %s=%v is %q (slip %v), want %q (slip %v)", tt.key, tt.values, got, got.slip, tt.want, tt.slip)
			}
		})
	}
}

func TestTheNearestNodeNameIsOneThatWasMeant(t *testing.T) {
	t.Parallel()
	nodes := []string{"control-1", "worker-1", "worker-2", "worker-12"}
	for typed, want := range map[string]string{"wroker-1": "worker-1", "worker1": "worker-1", "Worker-2": "worker-2", "database": "", "": "", "contrl-1": "control-1"} {
		if got := NearestName(typed, nodes); got != want {
			t.Errorf("nearest to %q is %q, want %q", typed, got, want)
		}
	}
}
