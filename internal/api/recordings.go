package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley"
)

// linkFor is how long a link to a recording works.
const linkFor = 24 * time.Hour

// recordingLinks is what signatures of links are for.
const recordingLinks = "recording link"

func linkText(call parley.ID, expires int64) string { return fmt.Sprintf("%d %d", call, expires) }

// RecordingLink is a link to a call's recording below an address, for whoever holds it,
// until it expires; nil without a recording.
func RecordingLink(keys interface {
	Sign(purpose, message string) (string, error)
}, base string, call *parley.Call, now time.Time,
) *string {
	if call.Recording == "" {
		return nil
	}
	expires := now.Add(linkFor).Unix()
	signature, err := keys.Sign(recordingLinks, linkText(call.ID, expires))
	if err != nil {
		return nil
	}
	link := fmt.Sprintf("%s/recordings/%d.wav?expires=%d&signature=%s", strings.TrimSuffix(base, "/"), call.ID, expires, signature)
	return &link
}

// linkRecording gives a call's record its link.
func (rq *request) linkRecording(call *parley.Call) {
	call.RecordingURL = RecordingLink(rq.server.db.Keys(), rq.server.baseURL(rq.Request), call, time.Now())
}

// mountRecordings serves recordings to whoever holds a link: players send no token.
func (s *Server) mountRecordings() {
	s.mux.HandleFunc("GET /recordings/{file}", func(w http.ResponseWriter, r *http.Request) {
		s.observe(w, r, "/recordings", func(w *answerWriter) {
			if s.callers.admit(w, s.clientAddress(r)) {
				s.serveRecording(w, r)
			}
		})
	})
}

func (s *Server) serveRecording(w *answerWriter, r *http.Request) {
	id, named := parley.ParseID(strings.TrimSuffix(r.PathValue("file"), ".wav"))
	query := r.URL.Query()
	expires, err := strconv.ParseInt(query.Get("expires"), 10, 64)
	if !named || err != nil || !s.db.Keys().Verify(recordingLinks, linkText(id, expires), query.Get("signature")) {
		w.message(http.StatusForbidden, "The link is not valid.")
		return
	}
	if time.Now().Unix() > expires {
		w.message(http.StatusForbidden, "The link has expired. Ask for the call again to get a new one.")
		return
	}
	call, err := s.db.System().Call(r.Context(), id)
	if err != nil || call.Recording == "" {
		w.message(http.StatusNotFound, "Recording not found")
		return
	}
	file, err := s.config.Recordings.Open(call.Recording)
	if err != nil {
		s.log.Error("a recording is missing", "call", id, "error", err)
		w.message(http.StatusNotFound, "Recording not found")
		return
	}
	defer file.Close()
	header := w.Header()
	header.Set("Content-Type", "audio/wav")
	header.Set("Cache-Control", "private, max-age=3600")
	header.Set("Content-Disposition", fmt.Sprintf(`inline; filename="call-%d.wav"`, id))
	w.status = http.StatusOK
	http.ServeContent(w.ResponseWriter, r, "", call.UpdatedAt, file)
}
