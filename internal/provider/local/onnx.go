//go:build speech

package local

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	ort "github.com/yalue/onnxruntime_go"
)

// loading guards onnxruntime, of which a process has one.
var loading sync.Mutex

// loadRuntime loads the library; it stays for as long as the process runs.
func loadRuntime(library string) error {
	loading.Lock()
	defer loading.Unlock()
	if ort.IsInitialized() {
		return nil
	}
	library, err := filepath.Abs(library) // else it would be looked for among the system's
	if err != nil {
		return err
	}
	ort.SetSharedLibraryPath(library)
	if err := ort.InitializeEnvironment(ort.WithLogLevelError()); err != nil {
		return fmt.Errorf("onnxruntime cannot be loaded: %w", err)
	}
	return nil
}

// loadModel opens a model that runs in its caller's thread alone: the pool decides
// how many cores work.
func loadModel(file string, inputs, outputs []string) (*ort.DynamicAdvancedSession, error) {
	options, err := ort.NewSessionOptions()
	if err != nil {
		return nil, err
	}
	defer func() { _ = options.Destroy() }()
	if err := errors.Join(options.SetIntraOpNumThreads(1), options.SetInterOpNumThreads(1)); err != nil {
		return nil, err
	}
	session, err := ort.NewDynamicAdvancedSession(file, inputs, outputs, options)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be loaded: %w", filepath.Base(file), err)
	}
	return session, nil
}

// release frees values, of which some may not have been made.
func release(values ...ort.Value) {
	for _, v := range values {
		if v != nil {
			_ = v.Destroy()
		}
	}
}
