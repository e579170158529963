package parley_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mayImport is the import direction: who may import whom inside the module. Every
// package may import the root; a package that is not here fails the test.
var mayImport = map[string][]string{
	"parley":                          {},
	"parley/internal/audio":           {},
	"parley/internal/converse":        {"parley/internal/audio"},
	"parley/internal/media":           {"parley/internal/audio"},
	"parley/internal/promise":         {},
	"parley/internal/provider":        {"parley/internal/audio", "parley/internal/converse"},
	"parley/internal/store":           {"parley/internal/audio"},
	"parley/internal/store/storetest": {"parley/internal/store"},
	"parley/internal/jobs":            {"parley/internal/store"},
	"parley/internal/api":             {"parley/internal/store", "parley/internal/jobs"},
	"parley/internal/sip/siptest":     {},
	"parley/internal/sip":             {"parley/internal/media", "parley/internal/audio"},
	"parley/internal/switchboard":     {"parley/internal/store", "parley/internal/jobs", "parley/internal/sip", "parley/internal/media", "parley/internal/converse", "parley/internal/audio"},
	"parley/internal/simulator":       {"parley/internal/sip", "parley/internal/media", "parley/internal/converse", "parley/internal/audio", "parley/internal/provider"},
	"parley/internal/dialer":          {"parley/internal/store", "parley/internal/jobs"},
	"parley/internal/egress":          {"parley/internal/store", "parley/internal/jobs"},
	"parley/cmd/parley":               {"parley/internal"},
}

// only names packages outside the module that belong in one place.
var only = map[string][]string{
	"github.com/jackc/pgx":        {"parley/internal/store", "parley/cmd/parley"},
	"modernc.org/sqlite":          {"parley/internal/store", "parley/cmd/parley"},
	"github.com/pressly/goose":    {"parley/internal/store"},
	"github.com/riverqueue/river": {"parley/internal/jobs", "parley/internal/store"},
	"net/http":                    {"parley/internal/api", "parley/cmd/parley", "parley/internal/provider", "parley/internal/egress"},
	"code.dny.dev/ssrf":           {"parley/internal/egress"},
	"database/sql":                {"parley/internal/store", "parley/internal/jobs", "parley/cmd/parley"},
	"testing":                     {"parley/internal/store/storetest", "parley/internal/sip/siptest"},
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) (all []goPackage) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	require.NoError(t, err)
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, p)
	}
}

// place is the entry of mayImport that a package falls under: its own or a parent's.
func place(t *testing.T, path string) string {
	t.Helper()
	for at := path; at != ""; at = at[:max(0, strings.LastIndex(at, "/"))] {
		if _, ok := mayImport[at]; ok && (at != "parley" || path == "parley") {
			return at
		}
	}
	t.Fatalf("%s has no place in the import direction; give it one in mayImport", path)
	return ""
}

func within(path string, places []string) bool {
	return slices.ContainsFunc(places, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") })
}

func TestImportsOnlyPointDown(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		at := place(t, p.ImportPath)
		for _, imported := range p.Imports {
			if imported == "parley" || strings.HasPrefix(imported, "parley/") {
				allowed := imported == "parley" || within(imported, mayImport[at]) || strings.HasPrefix(imported, at+"/")
				require.True(t, allowed, "%s must not import %s", p.ImportPath, imported)
				continue
			}
			for library, homes := range only {
				if within(imported, []string{library}) {
					require.True(t, within(p.ImportPath, homes), "%s must not import %s: it belongs in %v", p.ImportPath, imported, homes)
				}
			}
		}
	}
}

func TestTheDomainUsesTheStandardLibraryAlone(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if p.ImportPath != "parley" {
			continue
		}
		for _, imported := range p.Imports {
			first, _, _ := strings.Cut(imported, "/")
			require.NotContains(t, first, ".", "the domain must not import %s", imported)
			require.NotContains(t, []string{"net/http", "os", "database/sql", "log/slog"}, imported, "the domain does no I/O")
		}
	}
}

// What is built is what was pinned: go.sum holds every module's hash, and the copies
// on this machine match it. Known vulnerabilities are asked for by make check.
func TestPromiseV1DependenciesAreWhatWasPinned(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "mod", "verify").CombinedOutput()
	require.NoError(t, err, string(out))
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	for _, check := range []string{"GOVULNCHECK", "GOLANGCI_LINT", "mod verify", "vet ./..."} {
		require.Contains(t, string(makefile), check, "make check must run it")
	}
}

// Nobody turns the race detector or the shuffling off to get a test through.
func TestPromiseV2TheSuiteRunsUnderTheRaceDetector(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	for _, line := range []string{
		"$(GO) test -race -shuffle=on -timeout 20m $$($(GO) list ./... | grep -vxF \"$$($(GO) list $(IN_REAL_TIME))\")",
		"$(GO) test -race -shuffle=on -timeout 20m -p 1 $(IN_REAL_TIME)",
	} {
		require.Contains(t, string(makefile), line)
	}
}
