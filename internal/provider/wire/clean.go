// Package wire is what every vendor's provider does alike between Parley and its
// service: streams over WebSockets, the patience with a silent service, the words for
// what went wrong, and sound as bytes. It must not know any vendor.
package wire

import "strings"

// mostCharacters of a vendor's own message go into a call's record.
const mostCharacters = 200

// Clean makes a foreign text safe to keep: short, on one line, and without the key.
func Clean(text, key string) string {
	if key != "" {
		text = strings.ReplaceAll(text, key, "***")
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "")), " ")
	if r := []rune(text); len(r) > mostCharacters {
		text = string(r[:mostCharacters]) + "…"
	}
	return text
}
