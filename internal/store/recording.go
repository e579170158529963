package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"parley"
	"parley/internal/audio"
)

// Recordings is the folder of the calls' recordings. Nodes that share a database share
// it too.
type Recordings string

// RecordingName is the file of a call below the folder. It follows from the id, so that
// a node that takes over from a dead one finds what it left.
func RecordingName(call parley.ID) string { return fmt.Sprintf("%04d/%d.wav", call/1000, call) }

func (r Recordings) path(name string) string {
	return filepath.Join(string(r), filepath.FromSlash(name))
}

// Create begins the file of a call.
func (r Recordings) Create(call parley.ID) (*os.File, error) {
	path := r.path(RecordingName(call))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
}

// Open opens a recording for reading.
func (r Recordings) Open(name string) (*os.File, error) { return os.Open(r.path(name)) }

// Delete removes a recording. One that is gone already, or never was, is no error.
func (r Recordings) Delete(name string) error {
	if name == "" {
		return nil
	}
	err := os.Remove(r.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Salvage names the recording that a dead node left of a call, and makes it playable; ""
// when there is none.
func (r Recordings) Salvage(call parley.ID) string {
	name := RecordingName(call)
	file, err := os.OpenFile(r.path(name), os.O_RDWR, 0)
	if err != nil {
		return ""
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	if frames, err := audio.RepairWAV(file, info.Size()); err != nil || frames == 0 {
		return ""
	}
	return name
}
