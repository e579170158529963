package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"parley"
	"parley/internal/store"
)

const (
	maxImport   = 256 << 20 // bytes of a file: a few million leads
	importBatch = 5000      // leads in one transaction
	maxInvalid  = 100       // lines that an answer explains
	// importPatience is how long a batch may take to arrive and be stored; the server's
	// own limits are for requests of a moment.
	importPatience = 2 * time.Minute
)

func importRoutes() []Route {
	const group = "Campaigns"
	missing := Failure{http.StatusNotFound, "The campaign is unknown or another user's.", "Campaign not found", nil}
	return []Route{
		{Method: "POST", Path: "/user/campaigns/{id}/leads/import", Group: group, Summary: "Import leads from a CSV file", handle: importLeads, upload: true,
			Detail: "The first line names the columns. `phone_number` must be there, `timezone` may be; every other column is a variable of the lead, where it has a value. " +
				"Commas, semicolons, tabs and bars separate; UTF-8, UTF-16 and Windows-1252 are read; 256 MiB at most. Numbers the campaign has already are skipped, so a file can be sent again. " +
				"Leads are stored 5,000 at a time, and what was stored stays, whatever happens after.",
			Answer: leadsImported, Errors: []Failure{missing,
				{http.StatusUnprocessableEntity, "The file cannot be read.", "The first line must name the columns, one of them phone_number. It names: name, city.", nil},
				{http.StatusBadRequest, "The file did not arrive to its end.", "The file ended too early. Imported so far: 5000; send it again: those are skipped.", nil},
				{http.StatusUnsupportedMediaType, "The body is not a file.", "Send the file as text/csv, or as a file of multipart/form-data.", nil},
				{http.StatusRequestEntityTooLarge, "The file is too large.", "The file is larger than 256 MiB. Imported so far: 5000; send the rest in a file of its own.", nil}}},
		{Method: "GET", Path: "/user/campaigns/{id}/preview", Group: group, Summary: "What a campaign would do now", handle: previewCampaign,
			Detail: "How many leads it would call now, later and never if it ran, and why.", Answer: bare(ref("Forecast")), Errors: []Failure{missing}},
	}
}

func previewCampaign(ctx context.Context, rq *request) (*reply, error) {
	c, err := rq.tenant.Campaign(ctx, rq.id())
	if err != nil {
		return nil, err
	}
	forecast, err := rq.server.config.Preview(ctx, rq.user.ID, c.ID)
	if err != nil {
		return nil, err
	}
	return ok(record(parley.ForecastForm, &forecast))
}

func importLeads(ctx context.Context, rq *request) (*reply, error) {
	if _, err := rq.tenant.Campaign(ctx, rq.id()); err != nil {
		return nil, err
	}
	file, found := rq.uploaded()
	if !found {
		return refusal(http.StatusUnsupportedMediaType, "Send the file as text/csv, or as a file of multipart/form-data."), nil
	}
	in := &intake{rq: rq, campaign: rq.id(), Invalid: []invalidLine{}}
	started := time.Now()
	err := in.run(ctx, file)
	rq.server.log.Info("leads imported", "campaign_id", in.campaign, "imported", in.Imported, "duplicates", in.Duplicates, "invalid", in.InvalidCount, "took", time.Since(started))
	if err == nil {
		return done(http.StatusOK, leadsImported.Message, encode(in)), nil
	}
	if bad, ok := errors.AsType[fileError](err); ok {
		return refusal(http.StatusUnprocessableEntity, string(bad)+in.kept("correct the file and send it again: those are skipped.")), nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return refusal(http.StatusRequestEntityTooLarge, "The file is larger than 256 MiB."+in.kept("send the rest in a file of its own.")), nil
	}
	if _, ok := errors.AsType[cutOffError](err); ok {
		return refusal(http.StatusBadRequest, "The file ended too early."+in.kept("send it again: those are skipped.")), nil
	}
	return nil, err
}

func refusal(status int, message string) *reply {
	return &reply{status: status, body: encode(map[string]string{"message": message})}
}

// uploaded is the file in a request: its body, or the first file of a form.
func (rq *request) uploaded() (file io.Reader, found bool) {
	rq.Body = http.MaxBytesReader(nil, rq.Body, maxImport)
	kind, _, err := mime.ParseMediaType(rq.Header.Get("Content-Type"))
	if err != nil || kind == "application/json" {
		return nil, false
	}
	if kind != "multipart/form-data" {
		return rq.Body, true // clients and spreadsheets have many names for it
	}
	parts, err := rq.MultipartReader()
	if err != nil {
		return nil, false
	}
	for {
		part, err := parts.NextPart()
		if err != nil {
			return nil, false
		}
		if part.FileName() != "" || part.FormName() == "file" {
			return part, true
		}
	}
}

// cutOffError is a file that did not arrive to its end.
type cutOffError struct{ error }

// Unwrap is why it did not.
func (c cutOffError) Unwrap() error { return c.error }

// whole marks the errors of reading a file apart from those of storing it.
type whole struct{ io.Reader }

func (w whole) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = cutOffError{err}
	}
	return n, err
}

// intake is an import under way, and its answer.
type intake struct {
	Imported     int           `json:"imported"`
	Duplicates   int           `json:"duplicates"`
	Blacklisted  int           `json:"blacklisted"`
	InvalidCount int           `json:"invalid_count"`
	Invalid      []invalidLine `json:"invalid"`

	rq       *request
	campaign parley.ID
	batch    []store.NewLead
}

type invalidLine struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

// run reads a file to its end and stores its leads, a batch at a time.
func (in *intake) run(ctx context.Context, file io.Reader) error {
	in.patience()
	t, err := openTable(whole{file})
	if err != nil {
		return err
	}
	for {
		lead, err := t.lead()
		switch wrong, isLine := errors.AsType[lineError](err); {
		case errors.Is(err, io.EOF):
			return in.store(ctx)
		case errors.Is(err, errBlank):
		case isLine:
			in.refuse(t.line, string(wrong))
		case err != nil:
			// What was read is as good as the rest, also when its sender has gone away.
			return cmp.Or(in.store(context.WithoutCancel(ctx)), err)
		default:
			in.batch = append(in.batch, lead)
		}
		if len(in.batch) == importBatch {
			if err := in.store(ctx); err != nil {
				return err
			}
		}
	}
}

func (in *intake) refuse(line int, reason string) {
	in.InvalidCount++
	if len(in.Invalid) < maxInvalid {
		in.Invalid = append(in.Invalid, invalidLine{line, strings.ToUpper(reason[:1]) + reason[1:]})
	}
}

func (in *intake) store(ctx context.Context) error {
	in.patience()
	if len(in.batch) == 0 {
		return nil
	}
	imported, blacklisted, err := in.rq.tenant.ImportLeads(ctx, in.campaign, in.batch)
	if err != nil {
		return err
	}
	in.Imported += imported
	in.Blacklisted += blacklisted
	in.Duplicates += len(in.batch) - imported
	in.batch = in.batch[:0]
	in.patience()
	return nil
}

// patience gives the client and the database time for the next batch.
func (in *intake) patience() {
	control := http.NewResponseController(in.rq.writer)
	until := time.Now().Add(importPatience)
	_ = control.SetReadDeadline(until) // a test's recorder has no deadlines
	_ = control.SetWriteDeadline(until)
}

// kept tells what an import that did not reach its end has stored.
func (in *intake) kept(next string) string {
	if in.Imported == 0 {
		return ""
	}
	return fmt.Sprintf(" Imported so far: %d; %s", in.Imported, next)
}

var errBlank = errors.New("api: the line has no values")

// lead is the next line as a lead.
func (t *table) lead() (lead store.NewLead, err error) {
	fields, err := t.read()
	if err != nil {
		return lead, err
	}
	empty := true
	variables := []byte{'{'}
	for i, value := range fields {
		if value == "" {
			continue
		}
		empty = false
		switch {
		case i >= len(t.header):
			return lead, lineError(fmt.Sprintf("the line has %d values where the first line names %d columns.", len(fields), len(t.header)))
		case t.header[i] == "":
			return lead, lineError(fmt.Sprintf("column %d has a value and no name.", i+1))
		case t.header[i] == phoneColumn:
			lead.PhoneNumber = value
		case t.header[i] == zoneColumn:
			lead.Timezone = value
		default:
			if len(variables) > 1 {
				variables = append(variables, ',')
			}
			variables = append(append(append(variables, encode(t.header[i])...), ':'), encode(value)...)
		}
	}
	if empty {
		return lead, errBlank
	}
	lead.Variables = string(append(variables, '}'))
	return lead, t.check(&lead)
}

// check holds a lead against the rules of one that is sent alone.
func (t *table) check(lead *store.NewLead) error {
	if lead.PhoneNumber == "" {
		return lineError(parley.Required(phoneColumn))
	}
	if wrong := parley.E164(lead.PhoneNumber); wrong != "" {
		return lineError("The phone number " + wrong)
	}
	if lead.Timezone != "" && !t.zones[lead.Timezone] {
		if wrong := parley.Zone(lead.Timezone); wrong != "" {
			return lineError("The timezone " + wrong)
		}
		t.zones[lead.Timezone] = true
	}
	return nil
}
