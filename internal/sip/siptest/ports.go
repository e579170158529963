// Package siptest gives tests telephones that are not our own code, and ports for them.
package siptest

import (
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
)

// program is where a peer of Debian's is installed. Without it the test is skipped,
// loudly; with CI=true it fails: a peer that is not our own code is the point.
func program(t testing.TB, name, debian string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is missing: apt-get install %s", name, debian)
		}
		t.Skipf("SKIPPED, NOT TESTED: %s is missing: apt-get install %s", name, debian)
	}
	return path
}

// Baresip is where baresip is installed.
func Baresip(t testing.TB) string { return program(t, "baresip", "baresip-core") }

// block is how many ports in a row a peer gets.
const block = 8

var given sync.Map // the blocks that this process has given away

// Ports is the first of eight ports in a row that are free for UDP and TCP. They lie below
// those that the system gives to whoever asks for any, so that nobody takes one between
// this answer and its owner's start.
func Ports(t testing.TB) int {
	t.Helper()
	for range 1000 {
		first := 10000 + block*rand.IntN(1000)
		if _, taken := given.LoadOrStore(first, true); !taken && allFree(first) {
			return first
		}
	}
	t.Fatal("no free ports")
	return 0
}

func allFree(first int) bool {
	for port := first; port < first+block; port++ {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		tcp, err := net.Listen("tcp4", address)
		if err != nil {
			return false
		}
		_ = tcp.Close()
		udp, err := net.ListenPacket("udp4", address)
		if err != nil {
			return false
		}
		_ = udp.Close()
	}
	return true
}
