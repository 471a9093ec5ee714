package session

import (
	"encoding/json"

	"github.com/rollcall-k8s/rollcall/internal/redact"
)

// Redact hides in a text what looks secret, as Append does with every entry.
func Redact(s string) string { return redact.Text(s) }

// RedactJSON hides in a JSON document what looks secret.
func RedactJSON(data json.RawMessage) json.RawMessage { return redact.JSON(data) }
