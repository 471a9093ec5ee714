package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LogSource is the kubelets' side of `kubectl logs`: the whole log of a container, a line each, of its previous instance
// if opts says so. An error stands for a kubelet that cannot be reached or a log that is gone. It is called without the
// server's lock.
type LogSource func(pod *corev1.Pod, opts *corev1.PodLogOptions) (string, error)

// ServeLogs sets where logs come from. Without it they are empty.
func (s *Server) ServeLogs(source LogSource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs = source
}

// servePodSubresource answers log, binding and eviction.
func (s *Server) servePodSubresource(w http.ResponseWriter, req *http.Request, q *request) error {
	if q.resource.kind != "Pod" || !slices.ContainsFunc(q.resource.otherSubs, func(sub subresource) bool { return sub.name == q.subresource }) {
		return errNoSuchPath(q)
	}
	switch {
	case q.subresource == "log" && q.verb == "get":
		return s.serveLog(w, req, q)
	case q.subresource == "binding" && q.verb == "create":
		return s.serveBinding(w, req, q)
	case q.subresource == "eviction" && q.verb == "create":
		return s.serveEviction(w, req, q)
	default:
		return errMethod(q)
	}
}

func (s *Server) serveLog(w http.ResponseWriter, req *http.Request, q *request) error {
	opts, err := logOptions(req.URL.Query())
	if err != nil {
		return err
	}
	var o object
	var source LogSource
	s.locked(func() {
		o, err = s.get(q.resource, q.namespace, q.name)
		source = s.logs
	})
	if err != nil {
		return err
	}
	pod := o.(*corev1.Pod)
	if opts.Container, err = logContainer(pod, opts.Container); err != nil {
		return err
	}
	text := ""
	if source != nil && pod.Spec.NodeName != "" {
		if text, err = source(pod, opts); err != nil {
			if _, ok := err.(apierrors.APIStatus); !ok {
				err = apierrors.NewInternalError(err)
			}
			return err
		}
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = w.Write([]byte(cutLog(text, opts)))
	return nil
}

// logContainer is the container meant (kubernetes: pkg/registry/core/pod/strategy.go, LogLocation).
func logContainer(pod *corev1.Pod, name string) (string, error) {
	all, initial := containerNames(pod.Spec.Containers), containerNames(pod.Spec.InitContainers)
	switch {
	case name != "" && !slices.Contains(all, name) && !slices.Contains(initial, name):
		return "", apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", name, pod.Name))
	case name != "":
		return name, nil
	case len(all) == 1:
		return all[0], nil
	case len(initial) > 0:
		return "", apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s, choose one of: [%s] or one of the init containers: [%s]",
			pod.Name, strings.Join(all, " "), strings.Join(initial, " ")))
	default:
		return "", apierrors.NewBadRequest(fmt.Sprintf("a container name must be specified for pod %s, choose one of: [%s]", pod.Name, strings.Join(all, " ")))
	}
}

func containerNames(containers []corev1.Container) []string {
	out := make([]string, len(containers))
	for i, c := range containers {
		out[i] = c.Name
	}
	return out
}

func cutLog(text string, opts *corev1.PodLogOptions) string {
	if opts.TailLines != nil {
		lines := strings.SplitAfter(text, "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		if n := int(*opts.TailLines); n < len(lines) {
			text = strings.Join(lines[len(lines)-n:], "")
		}
	}
	if opts.LimitBytes != nil && int64(len(text)) > *opts.LimitBytes {
		text = text[:*opts.LimitBytes]
	}
	return text
}

func (s *Server) serveBinding(w http.ResponseWriter, req *http.Request, q *request) error {
	a, wr, _, err := s.prepareWrite(w, req, q)
	if err != nil {
		return err
	}
	o, err := decodeBody(req, corev1.SchemeGroupVersion.WithKind("Binding"), fieldValidation{})
	if err != nil {
		return err
	}
	s.locked(func() { err = s.bind(q.namespace, q.name, o.(*corev1.Binding).Target.Name, wr) })
	if err != nil {
		return err
	}
	writeSuccess(w, a)
	return nil
}

func (s *Server) serveEviction(w http.ResponseWriter, req *http.Request, q *request) error {
	a, wr, _, err := s.prepareWrite(w, req, q)
	if err != nil {
		return err
	}
	o, err := decodeBody(req, policyv1.SchemeGroupVersion.WithKind("Eviction"), fieldValidation{})
	if err != nil {
		return err
	}
	opts := o.(*policyv1.Eviction).DeleteOptions
	if opts == nil {
		opts = &metav1.DeleteOptions{}
	}
	if wr.dryRun {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	s.locked(func() { err = s.evict(q.namespace, q.name, opts) })
	if err != nil {
		return err
	}
	writeSuccess(w, a)
	return nil
}

func writeSuccess(w http.ResponseWriter, a accepted) {
	writeObject(w, http.StatusCreated, asOnly(a), &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusSuccess, Code: http.StatusCreated})
}
