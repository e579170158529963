package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/internal/dialer"
	"parley/internal/jobs"
	"parley/internal/store"
)

type benchCampaignCmd struct {
	Postgres string `env:"PARLEY_BENCH_POSTGRES" help:"PostgreSQL on this machine to measure too (postgres://...@127.0.0.1/name); it works in schemas of its own and removes them."`
	Short    int    `env:"PARLEY_BENCH_SHORT" default:"10000" help:"Leads of the short list."`
	Rows     int    `env:"PARLEY_BENCH_LEADS" default:"1000000" help:"Leads of the long list."`
	Ticks    int    `env:"PARLEY_BENCH_TICKS" default:"200" help:"Ticks that are measured on each list; the two take turns."`
}

// Validate bounds the load and keeps it on this machine.
func (b *benchCampaignCmd) Validate() error {
	switch {
	case b.Short < 1000 || b.Short > b.Rows:
		return errors.New("--short must be 1000 or more, and not more than --rows")
	case b.Rows > 5_000_000:
		return errors.New("--rows must be 5000000 at most")
	case b.Ticks < 1 || b.Ticks > 10_000:
		return errors.New("--ticks must be between 1 and 10000")
	}
	return onThisMachine(b.Postgres)
}

// campaignFindings is what was measured on one database.
type campaignFindings struct {
	database    string
	imported    time.Duration // of the long list
	short, long []time.Duration
	perSecond   float64 // calls begun
}

// Run measures every database it was given and prints what it found.
func (b *benchCampaignCmd) Run(ctx context.Context, c console) error {
	c.printf("Parley %s, %s on %d cores; load of the machine at the start: %s.\n\n", version, runtime.Version(), runtime.GOMAXPROCS(0), machineLoad())
	rows := [][]string{{"DATABASE", "IMPORT LEADS/S", fmt.Sprintf("%d LEADS", b.Rows), fmt.Sprintf("TICK, %d LEADS", b.Short), fmt.Sprintf("TICK, %d LEADS", b.Rows), "RATIO", "CALLS BEGUN/S"}}
	measured, err := onEach(ctx, c, b.Postgres, b.measure)
	if err != nil {
		return err
	}
	for _, found := range measured {
		short, long := percentile(found.short, 0.5), percentile(found.long, 0.5)
		rows = append(rows, []string{found.database, fmt.Sprintf("%.0f", float64(b.Rows)/found.imported.Seconds()), found.imported.Round(100 * time.Millisecond).String(),
			millis(short), millis(long), fmt.Sprintf("%.2f", float64(long)/float64(short)), fmt.Sprintf("%.0f", found.perSecond)})
	}
	if err := c.table(rows); err != nil {
		return err
	}
	c.printf("\nA tick looks at the campaign, plans for up to 200 leads that are due and begins one call; medians. Load at the end: %s.\n", machineLoad())
	return nil
}

// machineLoad is what else the machine does, as far as it tells.
func machineLoad() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "not known"
	}
	minute, _, _ := strings.Cut(string(raw), " ")
	return minute
}

func (b *benchCampaignCmd) measure(ctx context.Context, kind benchDatabase, p progress) (found *campaignFindings, err error) {
	found = &campaignFindings{database: kind.name}
	short, err := openField(ctx, kind)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, short.close()) }()
	long, err := openField(ctx, kind)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, long.close()) }()
	if _, err := short.fill(ctx, b.Short, p); err != nil {
		return nil, err
	}
	if found.imported, err = long.fill(ctx, b.Rows, p); err != nil {
		return nil, err
	}
	for tick := range b.Ticks {
		p.stepf("tick %d of %d", tick+1, b.Ticks)
		for _, side := range []struct {
			of *field
			to *[]time.Duration
		}{{short, &found.short}, {long, &found.long}} {
			took, begun, err := side.of.tick(ctx)
			if err != nil {
				return nil, err
			}
			if begun != 1 {
				return nil, fmt.Errorf("a tick began %d calls instead of one", begun)
			}
			*side.to = append(*side.to, took)
		}
	}
	found.perSecond, err = long.burst(ctx, p)
	return found, err
}

// field is a database with one campaign and a dialer, without a telephone: calls are begun,
// and are over when the next tick comes.
type field struct {
	ground
	db       *store.DB
	dialer   *dialer.Dialer
	tenant   *store.Tenant
	campaign *parley.Campaign
}

func openField(ctx context.Context, kind benchDatabase) (f *field, err error) {
	f = &field{}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	database, err := f.take(ctx, kind)
	if err != nil {
		return f, err
	}
	if f.db, err = (&Config{Data: f.dir, DB: database}).openDB(ctx); err != nil {
		return f, err
	}
	log := slog.New(slog.DiscardHandler)
	if _, err = prepare(ctx, f.db, &Config{}, log); err != nil {
		return f, err
	}
	f.dialer = &dialer.Dialer{DB: f.db, Log: log, Caps: dialer.DefaultCaps(), Carriers: parley.Carriers{Simulated: true}}
	if f.dialer.Queue, err = jobs.New(f.db, log, jobs.Work{}); err != nil {
		return f, err
	}
	return f, f.furnish(ctx)
}

// furnish makes the campaign, which may have one call up at a time.
func (f *field) furnish(ctx context.Context) error {
	user, err := f.db.System().UserByEmail(ctx, store.FirstUser.Email)
	if err != nil {
		return err
	}
	f.tenant = f.db.Tenant(user.ID)
	a := &parley.Assistant{Name: "Caller", Type: parley.Outbound, Mode: parley.Pipeline, VoiceID: 1, LanguageID: 1, LLMModelID: 1}
	parley.AssistantForm.SetDefaults(a)
	a.Language, a.LLMModel, a.Timezone = "English", "sandbox", "UTC"
	if err := f.tenant.CreateAssistant(ctx, a); err != nil {
		return err
	}
	var errs parley.FieldErrors
	f.campaign, _, errs = parley.CreateCampaign(parley.Input{"name": "Bench", "assistant_id": json.Number(strconv.FormatInt(a.ID, 10)), "timezone": "UTC", "max_calls_in_parallel": json.Number("1")})
	if len(errs) > 0 {
		return fmt.Errorf("the bench's campaign is refused: %v", errs)
	}
	return f.tenant.CreateCampaign(ctx, f.campaign)
}

// fill imports leads as an import does, 5,000 a transaction, and starts the campaign.
func (f *field) fill(ctx context.Context, count int, p progress) (took time.Duration, err error) {
	began := time.Now()
	for from := 0; from < count; from += copyBatch {
		p.stepf("importing %d of %d leads", from, count)
		leads := make([]store.NewLead, min(copyBatch, count-from))
		for i := range leads {
			leads[i] = store.NewLead{PhoneNumber: fmt.Sprintf("+1%010d", 2_025_560_000+from+i), Variables: `{"name":"Ada","order":"4711"}`}
		}
		if _, _, err := f.tenant.ImportLeads(ctx, f.campaign.ID, leads); err != nil {
			return 0, err
		}
	}
	took = time.Since(began)
	if f.db.Postgres() { // its own daemon would get to it within a minute
		if _, err := f.db.SQL().ExecContext(ctx, "ANALYZE"); err != nil {
			return 0, err
		}
	}
	f.campaign.Status = parley.CampaignInProgress
	return took, f.tenant.SetCampaignStatus(ctx, f.campaign)
}

// tick measures a tick and ends what it began.
func (f *field) tick(ctx context.Context) (took time.Duration, begun int64, err error) {
	start := time.Now()
	if err := f.dialer.Tick(ctx, start); err != nil {
		return 0, 0, err
	}
	took = time.Since(start)
	if begun, err = f.db.System().CampaignCalls(ctx, f.campaign.ID); err != nil {
		return 0, 0, err
	}
	const began = "FROM calls WHERE status IN ('initiated', 'ringing', 'in-progress') AND campaign_id = %d"
	return took, begun, inTx(ctx, f.db.SQL(),
		fmt.Sprintf("UPDATE leads SET status = 'completed' WHERE id IN (SELECT lead_id "+began+")", f.campaign.ID),
		fmt.Sprintf("UPDATE calls SET status = 'no-answer', dialed_at = created_at, ended_at = created_at WHERE id IN (SELECT id "+began+")", f.campaign.ID))
}

// bursts is how often the campaign's hundred places are filled.
const bursts = 10

// burst measures how fast calls are begun when there is room for a hundred.
func (f *field) burst(ctx context.Context, p progress) (perSecond float64, err error) {
	f.campaign.MaxCallsInParallel = 100
	if err := f.tenant.SaveCampaign(ctx, f.campaign); err != nil {
		return 0, err
	}
	var all time.Duration
	var calls int64
	for i := range bursts {
		p.stepf("calls begun, round %d of %d", i+1, bursts)
		took, begun, err := f.tick(ctx)
		if err != nil {
			return 0, err
		}
		all, calls = all+took, calls+begun
	}
	return float64(calls) / all.Seconds(), nil
}

// close removes what the field kept.
func (f *field) close() (err error) {
	if f.db != nil {
		err = f.db.Close()
	}
	return errors.Join(err, f.leave())
}
