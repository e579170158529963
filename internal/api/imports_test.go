package api_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"mime/multipart"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"parley/internal/promise"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

// upload sends a file and holds the answer against the document.
func (s *service) upload(path, contentType string, file io.Reader) answer {
	s.t.Helper()
	request := httptest.NewRequest("POST", "/api"+path, file)
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Authorization", "Bearer "+s.token)
	recorder := httptest.NewRecorder()
	s.handler.ServeHTTP(recorder, request)
	result := recorder.Result()
	got := answer{status: result.StatusCode, header: result.Header, body: recorder.Body.String()}
	odd := *s
	odd.odd = true // its body is no JSON to check
	odd.checkDocumented(request, "", result, got)
	return got
}

// campaign makes an assistant and a campaign, and is the path of its import.
func (s *service) campaign() string {
	s.t.Helper()
	s.want(201, "POST", "/user/assistant", anAssistant(""))
	id := s.want(201, "POST", "/user/campaigns", `{"name":"Spring","assistant_id":1}`).data(s.t)["id"]
	return fmt.Sprintf("/user/campaigns/%v/leads/import", id)
}

func utf16Bytes(text string, order binary.ByteOrder, mark bool) string {
	units := utf16.Encode([]rune(text))
	if mark {
		units = append([]uint16{0xfeff}, units...)
	}
	var b bytes.Buffer
	_ = binary.Write(&b, order, units)
	return b.String()
}

func TestImportReadsWhatSpreadsheetsWrite(t *testing.T) {
	each(t, func(s *service) {
		path := s.campaign()
		const plain = "phone_number,name\r\n+12025550100,Zoë\r\n+12025550101,\"O'Hara, \"\"Bob\"\"\"\r\n"
		for name, file := range map[string]string{
			"plain":            plain,
			"no last line end": strings.TrimRight(plain, "\r\n"),
			"line feeds":       strings.ReplaceAll(plain, "\r", ""),
			"byte order mark":  "\ufeff" + plain,
			"UTF-16 LE":        utf16Bytes(plain, binary.LittleEndian, true),
			"UTF-16 BE":        utf16Bytes(plain, binary.BigEndian, true),
			"no mark, LE":      utf16Bytes(plain, binary.LittleEndian, false),
			"no mark, BE":      utf16Bytes(plain, binary.BigEndian, false),
			"Latin-1":          strings.ReplaceAll(plain, "ë", "\xeb"),
			"blank lines":      "\r\n\n" + strings.ReplaceAll(plain, "\r\n", "\r\n\r\n\r\n") + ",\r\n , \r\n",
			"semicolons":       "phone_number;name\n+12025550100;Zoë\n+12025550101;\"O'Hara, \"\"Bob\"\"\"\n",
			"tabs":             "name\tphone_number\nZoë\t+12025550100\n\"O'Hara, \"\"Bob\"\"\"\t +12025550101 \n",
			"bars":             "phone_number|name\n+12025550100|Zoë\n+12025550101|\"O'Hara, \"\"Bob\"\"\"\n",
			"Excel's first":    "sep=;\r\nphone_number;name\r\n+12025550100;Zoë\r\n+12025550101;\"O'Hara, \"\"Bob\"\"\"\r\n",
			"its own spelling": "Phone Number , name\n+12025550100,Zoë\n+12025550101,\"O'Hara, \"\"Bob\"\"\"\n",
			"empty columns":    "phone_number,name,,\n+12025550100,Zoë,,\n+12025550101,\"O'Hara, \"\"Bob\"\"\",,,,\n",
		} {
			got := s.upload(path, "text/csv", strings.NewReader(file))
			require.Equal(s.t, `{"message":"Leads imported successfully","data":{"imported":2,"duplicates":0,"blacklisted":0,"invalid_count":0,"invalid":[]}}`, got.body, name)
			leads := s.want(200, "GET", "/user/leads", "").list(s.t)
			require.Len(s.t, leads, 2, name)
			require.Equal(s.t, map[string]any{"name": `O'Hara, "Bob"`}, leads[0]["variables"], name)
			require.Equal(s.t, map[string]any{"name": "Zoë"}, leads[1]["variables"], name)
			require.Equal(s.t, "+12025550100", leads[1]["phone_number"], name)
			for _, lead := range leads {
				s.want(200, "DELETE", fmt.Sprintf("/user/leads/%v", lead["id"]), "")
			}
		}
	})
}

func TestImportSaysWhatIsWrong(t *testing.T) {
	each(t, func(s *service) {
		path := s.campaign()
		for name, c := range map[string]struct {
			file   string
			status int
			says   string
		}{
			"empty":             {"", 422, "The file is empty."},
			"only space":        {" \n\n ", 422, "The file is empty."},
			"no number column":  {"name,city\nAda,London\n", 422, "The first line must name the columns, one of them phone_number. It names: name, city."},
			"no header":         {"+12025550100,Ada\n", 422, "It names: +12025550100, Ada."},
			"a column twice":    {"phone_number,name,name\n", 422, `The column \"name\" is there twice.`},
			"too many columns":  {"phone_number" + strings.Repeat(",x", 300) + "\n", 422, "The file has 301 columns; at most 200 are read."},
			"a spreadsheet":     {"PK\x03\x04xxxxxxx", 422, "Save it as CSV"},
			"not text":          {"\x1f\x8b\x08\x00\x00\x00", 422, "The file is not a text file."},
			"never closed":      {"phone_number,name\n+12025550190,A\n+12025550192,\"B\n+12025550193,C\n", 422, "Line 3: a quote is opened and never closed. Imported so far: 1; correct the file and send it again: those are skipped."},
			"never closed last": {"phone_number,name\n+12025550191,A\n+12025550192,\"B", 422, "Line 3: a quote is opened and never closed."},
			"a huge line":       {"phone_number,name\n+12025550191,A\n+12025550192,\"" + strings.Repeat("x\n", 1<<20) + "\"", 422, "What follows line 2 is a line of more than 1 MiB"},
			"misquoted header":  {"phone_number,\"na\"me\n", 422, "Line 1: "},
		} {
			got := s.upload(path, "text/csv", strings.NewReader(c.file))
			require.Equal(s.t, c.status, got.status, "%s: %s", name, got.body)
			require.Contains(s.t, got.body, c.says, name)
		}
		for _, contentType := range []string{"application/json", "", "multipart/form-data"} {
			got := s.upload(path, contentType, strings.NewReader("phone_number\n+12025550100\n"))
			require.Equal(s.t, 415, got.status, got.body)
		}
		require.Equal(s.t, 404, s.upload("/user/campaigns/9/leads/import", "text/csv", strings.NewReader("")).status)

		file := "phone_number,name,timezone,\n" + // line 1
			"+12025550110,good,America/New_York\n" +
			"12025550111,no plus\n" +
			",no number\n" +
			"+12025550112,zone,Mars/Olympus\n" +
			"+12025550113,many,,,five\n" +
			"+12025550114,\"multi\nline\",,\n" +
			"+12025550115,unnamed,,value\n" + // line 9
			"+12025550116,in\"side\n" +
			"+12025550117,\"after\"wards\n" +
			"+12025550118,NUL\x00\n" +
			"+12025550110,twice\n" +
			"+12025550119,\"open\n" + // line 14, to the next quote
			"+12025550120,a \"b\n" +
			"+12025550121\n" // fewer values are fine
		got := s.upload(path, "text/csv; charset=utf-8", strings.NewReader(file))
		require.Equal(s.t, `{"message":"Leads imported successfully","data":{"imported":3,"duplicates":1,"blacklisted":0,"invalid_count":9,"invalid":[`+
			`{"line":3,"reason":"The phone number must be a phone number in E.164 form, such as +12025550100."},`+
			`{"line":4,"reason":"The phone number field is required."},`+
			`{"line":5,"reason":"The timezone must be a valid time zone, such as Europe/Berlin."},`+
			`{"line":6,"reason":"The line has 5 values where the first line names 4 columns."},`+
			`{"line":9,"reason":"Column 4 has a value and no name."},`+
			`{"line":10,"reason":"A quote stands inside a value: put the value in quotes and write the quote twice."},`+
			`{"line":11,"reason":"A quoted value goes on after its closing quote: write a quote inside a quoted value twice."},`+
			`{"line":12,"reason":"A value contains a NUL character."},`+
			`{"line":14,"reason":"A quote is opened here and closed inside a value of line 15: none of the lines up to there was read."}]}}`, got.body)
		lead := s.want(200, "GET", "/user/leads?phone_number=0110", "").list(s.t)[0]
		require.Equal(s.t, "America/New_York", lead["timezone"])
		require.Equal(s.t, map[string]any{"name": "good"}, lead["variables"], "empty values and the zone are no variables")
	})
}

// A file may come as a form's, holds who must not be called, and can be sent again.
func TestImportTwiceAddsNothing(t *testing.T) {
	each(t, func(s *service) {
		path := s.campaign()
		s.want(200, "POST", "/user/do-not-call", `{"phone_number":"+12025550108"}`)
		form := func() (string, io.Reader) {
			var b bytes.Buffer
			w := multipart.NewWriter(&b)
			require.NoError(s.t, w.WriteField("note", "x"))
			part, err := w.CreateFormFile("file", "leads.csv")
			require.NoError(s.t, err)
			_, _ = io.WriteString(part, "phone_number\n+12025550100\n+12025550108\n+12025550100\n")
			require.NoError(s.t, w.Close())
			return w.FormDataContentType(), &b
		}
		got := s.upload(path, first(form()), second(form()))
		require.Equal(s.t, 415, got.status, "another form's boundary holds no file: %s", got.body)
		contentType, body := form()
		got = s.upload(path, contentType, body)
		require.Contains(s.t, got.body, `"imported":2,"duplicates":1,"blacklisted":1,"invalid_count":0`)
		contentType, body = form()
		got = s.upload(path, contentType, body)
		require.Contains(s.t, got.body, `"imported":0,"duplicates":3,"blacklisted":0,"invalid_count":0`)
		require.Contains(s.t, s.want(200, "GET", "/user/campaigns/1", "").body, `"progress":{"total":2,"created":1,"processing":0,"completed":0,"rescheduled":0,"reached_max_retries":0,"blacklisted":1}`)
		require.NotContains(s.t, s.log.String(), "+1202", "no number reaches the log")
	})
}

func first(a string, _ io.Reader) string     { return a }
func second(_ string, b io.Reader) io.Reader { return b }

// broken is a file whose sender goes away.
type broken struct{ rest io.Reader }

func (b *broken) Read(p []byte) (int, error) {
	n, err := b.rest.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func TestImportKeepsWhatItReadWhenTheSenderGoesAway(t *testing.T) {
	each(t, func(s *service) {
		path := s.campaign()
		got := s.upload(path, "text/csv", &broken{&leadFile{rows: 6000}})
		require.Equal(s.t, 400, got.status, got.body)
		require.Contains(s.t, got.body, "The file ended too early. Imported so far: 6000; send it again: those are skipped.")
		require.Contains(s.t, s.upload(path, "text/csv", &leadFile{rows: 6001}).body, `"imported":1,"duplicates":6000`)
	})
}

// leadFile is a file of many rows that is nowhere as a whole.
type leadFile struct {
	rows, row int
	rest      []byte
	reading   func(row int) // told of every row
}

func (f *leadFile) Read(p []byte) (int, error) {
	for len(f.rest) == 0 {
		if f.row > f.rows {
			return 0, io.EOF
		}
		f.rest = []byte("phone_number,name,city\n")
		if f.row > 0 {
			f.rest = fmt.Appendf(nil, "+1202%07d,Customer %d,Springfield\n", f.row, f.row)
		}
		f.row++
		if f.reading != nil {
			f.reading(f.row)
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// A hundred thousand rows in one request, with PARLEY_PROMISES=full a million on
// PostgreSQL in under a minute. What was read is stored and counted before more is read,
// so that neither memory nor what a crash could lose grows with the file.
func TestPromiseQ5ImportIsStreamed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		s := newService(t, db)
		path := s.campaign()
		rows := promise.Figure(20_000, 1_000_000)
		if !db.Postgres() {
			rows = min(rows, 100_000)
		}
		const ahead = 10_000 // a batch, and what the buffers hold
		file := &leadFile{rows: rows, reading: func(row int) {
			if row%ahead == 0 {
				campaign, err := db.Tenant(1).Campaign(t.Context(), 1)
				require.NoError(t, err)
				require.GreaterOrEqual(t, campaign.Progress.Total, row-ahead)
			}
		}}
		start := time.Now()
		got := s.upload(path, "text/csv", file)
		took := time.Since(start)
		require.Contains(t, got.body, fmt.Sprintf(`"imported":%d,"duplicates":0`, rows))
		require.Contains(t, s.want(200, "GET", "/user/campaigns/1", "").body, fmt.Sprintf(`"progress":{"total":%d,`, rows))
		t.Logf("%d rows in %s: %.0f a second", rows, took, float64(rows)/took.Seconds())
		if rows == 1_000_000 {
			require.Less(t, took, time.Minute)
		}
	})
}
