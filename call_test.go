package parley_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parley"
)

func TestACallNeverGoesBackward(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		status := parley.CallInitiated
		visited := map[parley.CallStatus]bool{status: true}
		for range 20 {
			next := rapid.SampledFrom(parley.CallStatuses).Draw(r, "next")
			if !status.CanBecome(next) {
				continue
			}
			require.False(r, visited[next], "%s came twice", next)
			require.False(r, status.Final(), "%s is final, yet became %s", status, next)
			require.Contains(r, next.Before(), status)
			visited[next], status = true, next
		}
		require.False(r, visited[parley.CallBusy] && visited[parley.CallInProgress], "a busy line had no conversation")
	})
}

func TestCallStatusTransitions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to parley.CallStatus
		may      bool
	}{
		{parley.CallInitiated, parley.CallRinging, true},
		{parley.CallInitiated, parley.CallInProgress, true}, // a carrier that never says 180
		{parley.CallRinging, parley.CallInitiated, false},
		{parley.CallRinging, parley.CallBusy, true},
		{parley.CallInProgress, parley.CallFailed, false},
		{parley.CallInProgress, parley.CallEndedByCustomer, true},
		{parley.CallEndedByCustomer, parley.CallEndedByAssistant, false},
		{parley.CallEnded, parley.CallCompleted, true},
		{parley.CallCompleted, parley.CallEnded, false},
		{parley.CallFailed, parley.CallCompleted, false},
		{"nonsense", parley.CallCompleted, false},
		{parley.CallInitiated, "nonsense", false},
	} {
		require.Equal(t, c.may, c.from.CanBecome(c.to), "%s -> %s", c.from, c.to)
	}
	for _, status := range parley.CallStatuses {
		require.NotEqual(t, status.Final(), len(after(status)) > 0, "%s is final exactly when nothing follows it", status)
	}
	require.True(t, parley.CallEnded.Talked())
	require.False(t, parley.CallBusy.Talked())
}

func after(status parley.CallStatus) (next []parley.CallStatus) {
	for _, s := range parley.CallStatuses {
		if status.CanBecome(s) {
			next = append(next, s)
		}
	}
	return next
}

// The keys of a record that are there only when there is something to say, and those
// that say null.
func TestCallRecords(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	bare := parley.Call{ID: 41, AssistantName: "Desk", Type: parley.Outbound, Status: parley.CallInitiated, CustomerNumber: "+12025550100", Variables: parley.Object{}, Evaluation: parley.Object{},
		Turns: []parley.Turn{}, Timeline: []parley.CallEvent{}, AnsweredBy: "unknown", CreatedAt: made, UpdatedAt: made}
	text, err := parley.CallForm.AppendRecord(nil, &bare)
	require.NoError(t, err)
	require.Equal(t, `{"id":41,"assistant_name":"Desk","type":"outbound","duration":0,"assistant_phone_number":"","client_phone_number":"+12025550100","status":"initiated","transcript":"",`+
		`"variables":{},"evaluation":{},"webhook_response":null,"carrier_cost":0,"total_cost":0,"answered_by":"unknown","created_at":"2026-03-01 12:00:00","updated_at":"2026-03-01 12:00:00",`+
		`"assistant_id":0,"ended_by":null,"end_reason":null,"fault":null,"failure":null,"answered_at":null,"ended_at":null,"transcript_turns":[],`+
		`"cost_breakdown":{"carrier":0,"transcriber":0,"model":0,"synthesizer":0,"multimodal":0,"evaluation":0},"quality":null,"timeline":[]}`, string(text))

	full := bare
	name, campaign, lead, reason, by, link, failure := "Spring", parley.ID(3), parley.ID(9), parley.EndModel, "system", "https://x.example/1.wav", "it said no"
	full.CampaignName, full.CampaignID, full.LeadID, full.EndReason, full.EndedBy, full.RecordingURL, full.Failure = &name, &campaign, &lead, &reason, &by, &link, &failure
	full.AnsweredAt, full.EndedAt, full.CarrierCost, full.TotalCost = &made, &made, 14_000, 15_000
	full.WebhookResponse = &parley.WebhookResponse{Status: 200, Body: map[string]any{"ok": true}, DeliveredAt: "2026-03-01T12:00:00Z"}
	full.Quality = &parley.Quality{PacketsSent: 5, JitterMS: 1.5}
	full.Turns = []parley.Turn{{Text: "Hello.", Sender: "bot", EndedMS: 900}}
	full.Timeline = []parley.CallEvent{{At: made, Event: parley.EventSIP, Detail: parley.Object{"status": 180}}}
	text, err = parley.CallForm.AppendRecord(nil, &full)
	require.NoError(t, err)
	for _, part := range []string{
		`"campaign_name":"Spring"`, `"campaign_id":3,"lead_id":9`, `"end_reason":"model_failed","fault":"provider","failure":"it said no"`, `"recording_url":"https://x.example/1.wav"`,
		`"carrier_cost":0.014,"total_cost":0.015`, `"answered_at":"2026-03-01 12:00:00"`, `"webhook_response":{"status":200,"body":{"ok":true},"delivered_at":"2026-03-01T12:00:00Z"}`,
		`"packets_sent":5,`, `"transcript_turns":[{"text":"Hello.","sender":"bot","timestamp":"","started_ms":0,"ended_ms":900,"interrupted":false,"latency":{"transcript_ms":0,`,
		`"timeline":[{"at":"2026-03-01T12:00:00.000000Z","event":"sip","detail":{"status":180}}]`,
	} {
		require.Contains(t, string(text), part)
	}
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	require.Empty(t, parley.Transcript(nil))
	require.Equal(t, "AI: Hello.\nCustomer: Who is it?", parley.Transcript([]parley.Turn{{Text: "Hello.", Sender: "bot"}, {Text: "Who is it?", Sender: "human"}}))
}

// The list of reasons is closed: every constant is in it, with whose doing it was.
func TestEveryEndReasonNamesItsFault(t *testing.T) {
	t.Parallel()
	source, err := parser.ParseFile(token.NewFileSet(), "ending.go", nil, 0)
	require.NoError(t, err)
	declared := 0
	for _, declaration := range source.Decls {
		constants, ok := declaration.(*ast.GenDecl)
		if !ok || constants.Tok != token.CONST {
			continue
		}
		for _, spec := range constants.Specs {
			constant := spec.(*ast.ValueSpec)
			if constant.Type.(*ast.Ident).Name != "EndReason" {
				continue
			}
			value, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			require.Contains(t, parley.Faults, parley.EndReason(value).Fault(), "%s has no fault", value)
			declared++
		}
	}
	require.Len(t, parley.EndReasons(), declared, "no two are alike")
	require.Empty(t, parley.EndReason("nonsense").Fault())
	require.True(t, slices.IsSorted(parley.EndReasons()))
}
