//go:build speech

package local

import (
	"io/fs"

	experimental "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"
)

// folder is the whole disk that flite sees: one file in memory, to be written once
// from its beginning to its end. What is said on a call reaches no real disk.
type folder struct {
	experimental.UnimplementedFS

	file *soundFile
}

const soundName = "sound.wav"

// OpenFile opens the sound file, or the folder itself.
func (f folder) OpenFile(path string, _ experimental.Oflag, _ fs.FileMode) (experimental.File, experimental.Errno) {
	switch path {
	case soundName:
		return f.file, 0
	case ".":
		return top{}, 0
	}
	return nil, experimental.ENOENT
}

// top is the folder as something that is open.
type top struct{ experimental.UnimplementedFile }

// IsDir says that it is a folder.
func (top) IsDir() (bool, experimental.Errno) { return true, 0 }

// Stat says the same.
func (top) Stat() (sys.Stat_t, experimental.Errno) { return sys.Stat_t{Mode: fs.ModeDir | 0o700}, 0 }

// soundFile keeps what is written to it.
type soundFile struct {
	experimental.UnimplementedFile

	written []byte
}

// IsDir says that it is none.
func (*soundFile) IsDir() (bool, experimental.Errno) { return false, 0 }

// Stat says that it is a plain file.
func (s *soundFile) Stat() (sys.Stat_t, experimental.Errno) {
	return sys.Stat_t{Mode: 0o600, Size: int64(len(s.written))}, 0
}

// Write appends.
func (s *soundFile) Write(b []byte) (int, experimental.Errno) {
	s.written = append(s.written, b...)
	return len(b), 0
}
