package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (s *Server) serveList(w http.ResponseWriter, req *http.Request, q *request) error {
	a, err := negotiate(req, true)
	if err != nil {
		return err
	}
	opts, err := readListOptions(req)
	if err != nil {
		return err
	}
	sel, err := selectionOf(opts, q)
	if err != nil {
		return err
	}
	var objects []object
	var meta metav1.ListMeta
	s.locked(func() { objects, meta, err = s.page(q.resource, sel, opts) })
	if err != nil {
		return err
	}
	// The objects never change, so the lock is not needed for the long part.
	for i := range objects {
		objects[i] = q.resource.view(objects[i])
	}
	writeObject(w, http.StatusOK, a, q.resource.shownList(objects, meta, a, s.clock()))
	return nil
}

// continuation is the API server's own form of the continue parameter (apiserver: pkg/storage/continue.go).
type continuation struct {
	APIVersion      string `json:"v"`
	ResourceVersion int64  `json:"rv"` // -1: the newest
	StartKey        string `json:"start"`
}

// page reads one page of a list, all pages of it at the version of the first.
func (s *Server) page(r *resource, sel selection, opts *internalversion.ListOptions) ([]object, metav1.ListMeta, error) {
	s.expireEvents()
	c := s.collections[r.stored().key()]
	revision, start, err := s.listVersion(opts)
	if err != nil {
		return nil, metav1.ListMeta{}, err
	}
	keys, objects, err := c.at(revision)
	if err != nil {
		return nil, metav1.ListMeta{}, listExpired(opts.Continue != "", start)
	}
	keys = keysWithin(keys, sel.namespace)
	from, _ := slices.BinarySearch(keys, start)
	keys = keys[from:]

	meta := metav1.ListMeta{ResourceVersion: formatRevision(revision)}
	limit := opts.Limit
	if opts.ResourceVersion == "0" && opts.Continue == "" {
		limit = 0 // answered from the watch cache, which pages nothing at this version
	}
	var out []object
	for i, k := range keys {
		if limit > 0 && int64(len(out)) == limit {
			meta.Continue = encodeContinue(keys[i-1]+"\x00", int64(revision))
			if sel.everything() {
				meta.RemainingItemCount = ptrTo(int64(len(keys) - i))
			}
			break
		}
		if o := objects[k]; sel.matches(o) {
			out = append(out, o)
		}
	}
	return out, meta, nil
}

// listVersion is the version to list at, and the key to start from.
func (s *Server) listVersion(opts *internalversion.ListOptions) (uint64, string, error) {
	if opts.Continue != "" {
		if opts.ResourceVersion != "" && opts.ResourceVersion != "0" {
			return 0, "", apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		token, err := decodeContinue(opts.Continue)
		if err != nil {
			return 0, "", apierrors.NewBadRequest(fmt.Sprintf("invalid continue token: %v", err))
		}
		if token.ResourceVersion < 0 {
			return s.revision, token.StartKey, nil
		}
		return uint64(token.ResourceVersion), token.StartKey, nil
	}
	if opts.ResourceVersion == "" {
		return s.revision, "", nil
	}
	wanted, err := parseRevision(opts.ResourceVersion)
	if err != nil {
		return 0, "", err
	}
	if wanted > s.revision {
		return 0, "", errFuture(wanted, s.revision)
	}
	// Without a match, a limit asks for exactly this version (apiserver: pkg/storage/etcd3/store.go).
	exact := opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		opts.ResourceVersionMatch == "" && opts.Limit > 0 && wanted > 0
	if exact {
		return wanted, "", nil
	}
	return s.revision, "", nil
}

func parseRevision(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: %v", text, err))
	}
	return n, nil
}

// errFuture answers a version that does not exist yet (apiserver: pkg/storage/errors.go).
func errFuture(wanted, newest uint64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", wanted, newest), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

// listExpired is the 410 of a list, with a token to go on at the newest version if it was a later page
// (apiserver: pkg/storage/etcd3/errors.go).
func listExpired(paging bool, start string) error {
	if !paging {
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	err := apierrors.NewResourceExpired("The provided continue parameter is too old " +
		"to display a consistent list result. You can start a new list without " +
		"the continue parameter, or use the continue token in this response to " +
		"retrieve the remainder of the results. Continuing with the provided " +
		"token results in an inconsistent list - objects that were created, " +
		"modified, or deleted between the time the first chunk was returned " +
		"and now may show up in the list.")
	err.ErrStatus.Continue = encodeContinue(start, -1)
	return err
}

func encodeContinue(start string, revision int64) string {
	data, err := json.Marshal(continuation{APIVersion: "meta.k8s.io/v1", ResourceVersion: revision, StartKey: start})
	if err != nil {
		panic(err) // strings and a number always encode
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

func decodeContinue(text string) (continuation, error) {
	var token continuation
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return token, fmt.Errorf("continue key is not valid: %w", err)
	}
	if err := json.Unmarshal(data, &token); err != nil {
		return token, fmt.Errorf("continue key is not valid: %w", err)
	}
	if token.APIVersion != "meta.k8s.io/v1" || token.ResourceVersion == 0 || token.StartKey == "" {
		return token, fmt.Errorf("continue key is not valid")
	}
	return token, nil
}
