package switchboard

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"parley"
	"parley/internal/audio"
	"parley/internal/store"
)

// recording is the file of a call. It is opened by the first frame, so that a call that
// was not answered, or whose notice has not ended, leaves none.
type recording struct {
	files    store.Recordings
	call     parley.ID
	log      *slog.Logger
	file     *os.File
	recorder *audio.Recorder
	frames   int
	failed   bool
}

func newRecording(files store.Recordings, call parley.ID, log *slog.Logger) *recording {
	return &recording{files: files, call: call, log: log}
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
		r.log.Error("a call cannot be recorded any further", "call", r.call, "error", err)
	}
}

func (r *recording) open() (err error) {
	if r.file != nil {
		return nil
	}
	if r.file, err = r.files.Create(r.call); err != nil {
		return err
	}
	r.recorder, err = audio.NewRecorder(r.file, lineRate)
	return err
}

// discard stops a recording that the customer refuses and removes what there is of it at
// once: a node that dies now must leave nothing to be found.
func (r *recording) discard() {
	if r == nil {
		return
	}
	r.failed = true
	if err := r.files.Delete(store.RecordingName(r.call)); err != nil {
		r.log.Error("a recording that was refused could not be deleted", "call", r.call, "error", err)
	}
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
		r.log.Error("a recording could not be finished", "call", r.call, "error", err)
	}
	if !keep || r.recorder == nil || r.frames == 0 {
		if err := r.files.Delete(store.RecordingName(r.call)); err != nil {
			r.log.Error("a recording that must not be kept could not be deleted", "call", r.call, "error", err)
		}
		return ""
	}
	return store.RecordingName(r.call)
}
