package switchboard

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"parley"
	"parley/internal/audio"
)

// recording is the file of a call. It is opened by the first frame, so that a call that
// was not answered, or whose notice has not ended, leaves none.
type recording struct {
	dir, name string
	log       *slog.Logger
	file      *os.File
	recorder  *audio.Recorder
	frames    int
	failed    bool
}

// RecordingName is the file of a call below the folder of recordings. It follows from the
// id, so that a node that takes over from a dead one finds what it left.
func RecordingName(call parley.ID) string { return fmt.Sprintf("%04d/%d.wav", call/1000, call) }

func newRecording(dir string, call parley.ID, log *slog.Logger) *recording {
	return &recording{dir: dir, name: RecordingName(call), log: log}
}

// tap takes a frame of both sides. A disk that fails ends the recording, not the call.
func (r *recording) tap(customer, assistant []int16) {
	if r.failed {
		return
	}
	err := r.open()
	if err == nil {
		at := audio.FrameDuration * time.Duration(r.frames)
		r.frames++
		err = errors.Join(r.recorder.Customer(at, customer), r.recorder.Assistant(at, assistant))
	}
	if err != nil {
		r.failed = true
		r.log.Error("a call cannot be recorded any further", "file", r.name, "error", err)
	}
}

func (r *recording) open() (err error) {
	if r.file != nil {
		return nil
	}
	path := filepath.Join(r.dir, r.name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if r.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return err
	}
	r.recorder, err = audio.NewRecorder(r.file, lineRate)
	return err
}

// finish closes the file and names it; "" when there is nothing to keep. It must not be
// called before the conversation has ended.
func (r *recording) finish(keep bool) string {
	if r == nil || r.file == nil {
		return ""
	}
	var err error
	if r.recorder != nil {
		err = r.recorder.Close()
	}
	err = errors.Join(err, r.file.Sync(), r.file.Close())
	if err != nil {
		r.log.Error("a recording could not be finished", "file", r.name, "error", err)
	}
	if !keep || r.recorder == nil || r.frames == 0 {
		r.log.Debug("a recording is not kept", "file", r.name)
		_ = os.Remove(filepath.Join(r.dir, r.name))
		return ""
	}
	return r.name
}

// salvage is the recording that a dead node left of a call, made playable; "" when there
// is none here.
func salvage(dir string, call parley.ID) string {
	name := RecordingName(call)
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR, 0)
	if err != nil {
		return ""
	}
	defer file.Close()
	if audio.RepairWAV(file) != nil {
		return ""
	}
	return name
}

// DeleteRecording removes a recording. One that is gone already is no error.
func DeleteRecording(dir, name string) error {
	if name == "" {
		return nil
	}
	err := os.Remove(filepath.Join(dir, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
