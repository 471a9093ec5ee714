package watch

import (
	"maps"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rollcall-k8s/rollcall/probes/cluster"
)

// demanded is a kind that is read whole, while something asks for it.
type demanded struct {
	feeder
	wanted time.Time // cluster time at which it last was asked for
}

// onDemand says how each kind that may be asked for is read. A namespaced kind goes
// back to the one namespace that may be read where all may not.
var onDemand = map[cluster.Resource]func(s *Source) feeder{
	cluster.Services: func(s *Source) feeder {
		return newFeed(s, corev1.SchemeGroupVersion, cluster.Services, scope{or: s.cfg.Namespace}, &corev1.Service{}, s.trim.service)
	},
	cluster.EndpointSlices: func(s *Source) feeder {
		return newFeed(s, discoveryv1.SchemeGroupVersion, cluster.EndpointSlices, scope{or: s.cfg.Namespace}, &discoveryv1.EndpointSlice{}, s.trim.endpointSlice)
	},
	cluster.ValidatingWebhooks: func(s *Source) feeder {
		return newFeed(s, admissionv1.SchemeGroupVersion, cluster.ValidatingWebhooks, scope{}, &admissionv1.ValidatingWebhookConfiguration{}, s.trim.validatingWebhook)
	},
	cluster.MutatingWebhooks: func(s *Source) feeder {
		return newFeed(s, admissionv1.SchemeGroupVersion, cluster.MutatingWebhooks, scope{}, &admissionv1.MutatingWebhookConfiguration{}, s.trim.mutatingWebhook)
	},
	cluster.ResourceQuotas: func(s *Source) feeder {
		return newFeed(s, corev1.SchemeGroupVersion, cluster.ResourceQuotas, scope{or: s.cfg.Namespace}, &corev1.ResourceQuota{}, plain[*corev1.ResourceQuota])
	},
	cluster.Namespaces: func(s *Source) feeder {
		return newFeed(s, corev1.SchemeGroupVersion, cluster.Namespaces, scope{}, &corev1.Namespace{}, plain[*corev1.Namespace])
	},
	cluster.PriorityClasses: func(s *Source) feeder {
		return newFeed(s, schedulingv1.SchemeGroupVersion, cluster.PriorityClasses, scope{}, &schedulingv1.PriorityClass{}, plain[*schedulingv1.PriorityClass])
	},
	cluster.PodDisruptionBudgets: func(s *Source) feeder {
		return newFeed(s, policyv1.SchemeGroupVersion, cluster.PodDisruptionBudgets, scope{or: s.cfg.Namespace}, &policyv1.PodDisruptionBudget{}, plain[*policyv1.PodDisruptionBudget])
	},
}

// fromFilesOnly are the kinds that no rule asks of a live cluster.
var fromFilesOnly = []cluster.Resource{cluster.CSINodes}

// followKinds starts the reads of kinds that are asked for and ends those that were
// not for long. It tells whether one began.
func (w *follows) followKinds(kinds []cluster.Resource, now time.Time) (began bool) {
	for _, r := range kinds {
		read := onDemand[r]
		switch {
		case read == nil: // it stays NotAsked
		case w.kinds[r] != nil:
			w.kinds[r].wanted = now
		default:
			w.kinds[r] = &demanded{read(w.src), now}
			w.kinds[r].start(w.src.ctx)
			began = true
		}
	}
	maps.DeleteFunc(w.kinds, func(_ cluster.Resource, k *demanded) bool {
		if now.Sub(k.wanted) <= w.src.cfg.Linger {
			return false
		}
		k.stop()
		return true
	})
	return began
}

// notAsked are the kinds that are not read: a snapshot must not look as if there
// were none.
func (w *follows) notAsked() []cluster.Resource {
	out := slices.Clone(fromFilesOnly)
	for r := range onDemand {
		if w.kinds[r] == nil {
			out = append(out, r)
		}
	}
	return out
}

// heldOf are the objects of a kind that is read on demand.
func heldOf[T interface {
	metav1.Object
	runtime.Object
}](w *follows, r cluster.Resource) []T {
	k := w.kinds[r]
	if k == nil {
		return nil
	}
	return k.feeder.(*feed[T]).store.list()
}
