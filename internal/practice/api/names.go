package api

import (
	"math/rand/v2"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"
)

// Kubernetes' own alphabet for generated suffixes: no vowels and nothing that looks alike
// (k8s.io/apimachinery/pkg/util/rand).
const (
	suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"
	suffixLength   = 5
	// maxGeneratedBase keeps generated names within 63 characters (k8s.io/apiserver/pkg/storage/names).
	maxGeneratedBase = 63 - suffixLength
)

// nameSource draws UIDs and name suffixes from a seed.
type nameSource struct{ random *rand.ChaCha8 }

func (n *nameSource) uid() types.UID {
	id, err := uuid.NewRandomFromReader(n.random)
	if err != nil {
		panic(err) // ChaCha8.Read never fails
	}
	return types.UID(id.String())
}

func (n *nameSource) name(base string) string {
	if len(base) > maxGeneratedBase {
		base = base[:maxGeneratedBase]
	}
	suffix := make([]byte, suffixLength)
	for i := range suffix {
		suffix[i] = suffixAlphabet[n.random.Uint64()%uint64(len(suffixAlphabet))]
	}
	return base + string(suffix)
}
