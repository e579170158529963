package api

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

const (
	maxColumns = 200
	maxLine    = 1 << 20 // of a record, which quotes may stretch over several lines
	sniffed    = 64 << 10
)

// table reads a CSV file as spreadsheets and databases write it: with any of the usual
// separators and encodings. It holds one record at a time.
type table struct {
	header []string
	rows   *csv.Reader
	budget *budget
	above  int             // lines before the header
	line   int             // where the last record began
	zones  map[string]bool // known to be zones: looking one up reads a file
}

// fileError is a file that cannot be read on, in words for its owner.
type fileError string

func (e fileError) Error() string { return string(e) }

// lineError is a record that cannot be used; the ones after it can.
type lineError string

func (e lineError) Error() string { return string(e) }

// budget ends a record that is too long: a quote that is never closed would take the
// whole file into memory.
type budget struct {
	*bufio.Reader
	left int
	used int64
}

var errTooLong = errors.New("api: the record is too long")

func (b *budget) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.Reader.Read(p)
	b.left -= n
	b.used += int64(n)
	return n, err
}

// ended says whether all has been read, where that much of it has been used.
func (b *budget) ended(offset int64) bool {
	_, err := b.Peek(1)
	return err != nil && offset == b.used
}

// openTable reads a file's header.
func openTable(file io.Reader) (*table, error) {
	text := bufio.NewReaderSize(inUTF8(bufio.NewReaderSize(file, sniffed)), sniffed)
	start, err := text.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(start, []byte("PK\x03\x04")):
		return nil, fileError("The file is a spreadsheet or an archive. Save it as CSV and send that.")
	case bytes.IndexByte(firstLine(start), 0) >= 0:
		return nil, fileError("The file is not a text file. Save it as CSV and send that.")
	case len(bytes.TrimSpace(start)) == 0:
		return nil, fileError("The file is empty. Its first line must name the columns, one of them phone_number.")
	}
	t := &table{budget: &budget{Reader: text, left: maxLine}, zones: map[string]bool{}}
	separator := separatorOf(start)
	if line := firstLine(start); bytes.HasPrefix(line, []byte("sep=")) { // written by Excel
		_, _ = text.Discard(len(line) + 1)
		t.above = 1
	}
	t.rows = csv.NewReader(t.budget)
	t.rows.Comma, t.rows.FieldsPerRecord, t.rows.ReuseRecord = separator, -1, true
	fields, err := t.read()
	if err != nil {
		if wrong, ok := errors.AsType[lineError](err); ok {
			return nil, fileError(fmt.Sprintf("Line %d: %s", t.line, wrong))
		}
		return nil, err
	}
	t.header = slices.Clone(fields)
	return t, t.checkHeader()
}

// inUTF8 turns UTF-16 into UTF-8 and drops a byte order mark. Other encodings are told
// value by value.
func inUTF8(file *bufio.Reader) io.Reader {
	start, _ := file.Peek(4)
	order := unicode.LittleEndian
	switch {
	case bytes.HasPrefix(start, []byte("\xef\xbb\xbf")):
		_, _ = file.Discard(3)
		return file
	case bytes.HasPrefix(start, []byte("\xff\xfe")):
	case bytes.HasPrefix(start, []byte("\xfe\xff")):
		order = unicode.BigEndian
	case len(start) == 4 && start[0] != 0 && start[1] == 0 && start[2] != 0 && start[3] == 0: // no mark, and Latin letters
	case len(start) == 4 && start[0] == 0 && start[1] != 0 && start[2] == 0 && start[3] != 0:
		order = unicode.BigEndian
	default:
		return file
	}
	return transform.NewReader(file, unicode.UTF16(order, unicode.UseBOM).NewDecoder())
}

func firstLine(text []byte) []byte {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return line
}

// separatorOf is what divides the columns of the first line.
func separatorOf(start []byte) rune {
	line := firstLine(start)
	if rest, ok := bytes.CutPrefix(line, []byte("sep=")); ok && len(rest) > 0 && strings.IndexByte(",;\t|", rest[0]) >= 0 {
		return rune(rest[0])
	}
	best, most := ',', 0
	for _, separator := range ",;\t|" {
		quoted, n := false, 0
		for _, c := range string(line) {
			switch {
			case c == '"':
				quoted = !quoted
			case c == separator && !quoted:
				n++
			}
		}
		if n > most {
			best, most = separator, n
		}
	}
	return best
}

// read is the next record, its values trimmed and in UTF-8.
func (t *table) read() ([]string, error) {
	t.budget.left = maxLine
	fields, err := t.rows.Read()
	if wrong, ok := errors.AsType[*csv.ParseError](err); ok {
		t.line = t.above + wrong.StartLine
		return nil, t.misquoted(wrong)
	}
	if errors.Is(err, errTooLong) {
		return nil, fileError(fmt.Sprintf("What follows line %d is a line of more than 1 MiB, or a quote in it is never closed.", t.line))
	}
	if err != nil {
		return nil, err
	}
	line, _ := t.rows.FieldPos(0)
	t.line = t.above + line
	for i, field := range fields {
		if !utf8.ValidString(field) {
			if field, err = charmap.Windows1252.NewDecoder().String(field); err != nil {
				return nil, lineError("a value is in an unknown encoding; save the file as UTF-8.")
			}
		}
		if strings.ContainsRune(field, 0) {
			return nil, lineError("a value contains a NUL character.")
		}
		fields[i] = strings.TrimSpace(field)
	}
	return fields, nil
}

// misquoted says what is wrong with a record's quotes.
func (t *table) misquoted(wrong *csv.ParseError) error {
	switch {
	case errors.Is(wrong, csv.ErrBareQuote):
		return lineError("a quote stands inside a value: put the value in quotes and write the quote twice.")
	case t.budget.ended(t.rows.InputOffset()):
		return fileError(fmt.Sprintf("Line %d: a quote is opened and never closed.", t.line))
	case wrong.Line != wrong.StartLine:
		return lineError(fmt.Sprintf("a quote is opened here and closed inside a value of line %d: none of the lines up to there was read.", t.above+wrong.Line))
	default:
		return lineError("a quoted value goes on after its closing quote: write a quote inside a quoted value twice.")
	}
}

// phoneColumn is the column that must be there, however it is written.
const phoneColumn = "phone_number"

// checkHeader refuses a header that would lose values.
func (t *table) checkHeader() error {
	if len(t.header) > maxColumns {
		return fileError(fmt.Sprintf("The file has %d columns; at most %d are read.", len(t.header), maxColumns))
	}
	seen := map[string]bool{}
	for i, name := range t.header {
		if folded := strings.ReplaceAll(strings.ToLower(name), " ", "_"); folded == phoneColumn || folded == zoneColumn {
			t.header[i] = folded
		}
		name = t.header[i]
		if seen[name] && name != "" {
			return fileError(fmt.Sprintf("The column %q is there twice.", name))
		}
		seen[name] = true
	}
	if !seen[phoneColumn] {
		return fileError("The first line must name the columns, one of them phone_number. It names: " + strings.Join(shortened(t.header), ", ") + ".")
	}
	return nil
}

// zoneColumn is the column of the leads' own time zones.
const zoneColumn = "timezone"

// shortened are the first names of a header, each cut to what a message has room for.
func shortened(names []string) []string {
	short := slices.Clone(names[:min(len(names), 20)])
	for i, name := range short {
		if runes := []rune(name); len(runes) > 40 {
			short[i] = string(runes[:40]) + "..."
		}
	}
	return short
}
