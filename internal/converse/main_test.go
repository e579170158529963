package converse

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// TestMain: goroutines before = after, over all tests together.
func TestMain(m *testing.M) {
	if underRace {
		_ = flag.Set("rapid.checks", "10")
	}
	goleak.VerifyTestMain(m)
}
