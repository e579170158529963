package parley

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// TestRecordTextIsJSON holds the quick way of writing text against encoding/json.
func TestRecordTextIsJSON(t *testing.T) {
	t.Parallel()
	check := func(s string) {
		t.Helper()
		want, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		got, err := appendText([]byte("before"), s)
		if err != nil || string(got) != "before"+string(want) {
			t.Fatalf("%q: %s, want %s (%v)", s, got, want, err)
		}
	}
	pieces := []string{"", "plain", `"`, `\`, "/", "\n", "\r", "\t", "\b", "\f", "\x00", "\x1f", "\x7f", "<", ">", "&", "é", "\u2028", "\u2029", "😀", "\xff", "\xc3", " "}
	for _, a := range pieces {
		for _, b := range pieces {
			for _, c := range pieces {
				check(a + b + c)
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		s := make([]byte, random.IntN(20))
		for i := range s {
			s[i] = byte(random.UintN(256))
		}
		check(string(s))
	}
}

// TestRecordListsAreJSON holds the quick way of writing lists against encoding/json.
func TestRecordListsAreJSON(t *testing.T) {
	t.Parallel()
	for _, value := range []any{
		&[]Header{}, new([]Header), &[]Header{{"X-A", "1"}, {"X-B", "<é>"}},
		&[]Param{}, new([]Param), &[]Param{{"a", "string", "A \"b\"\n"}},
		&[]string{}, new([]string), &[]string{"a", "<b>"},
		&FillerConfig{}, &FillerConfig{Neutral: []string{"x", "y"}, Negative: []string{}, Question: []string{"é"}},
	} {
		want, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := appendValue(nil, value); err != nil || string(got) != string(want) {
			t.Errorf("%s, want %s (%v)", got, want, err)
		}
	}
}
