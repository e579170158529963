package parley_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parley"
)

// The carrier charges every minute that has begun, at the price of the longest prefix.
func TestCarrierMinutes(t *testing.T) {
	t.Parallel()
	rates, err := parley.ReadRates([]byte(`{"carrier":{"+":0.5,"+4":0.4,"+49":0.02,"+4915":0.05},"inbound":0.01}`))
	require.NoError(t, err)
	for _, c := range []struct {
		direction parley.Direction
		number    string
		talked    time.Duration
		cost      float64
	}{
		{parley.Outbound, "+493012345678", time.Nanosecond, 0.02},
		{parley.Outbound, "+493012345678", time.Minute, 0.02},
		{parley.Outbound, "+493012345678", time.Minute + time.Nanosecond, 0.04},
		{parley.Outbound, "+4915112345678", 10 * time.Minute, 0.5},
		{parley.Outbound, "+431234567", time.Second, 0.4},
		{parley.Outbound, "+12125550123", time.Second, 0.014}, // a default that the file does not name
		{parley.Outbound, "+9991234567", time.Second, 0.5},
		{parley.Outbound, "+493012345678", 0, 0},
		{parley.Inbound, "+493012345678", 61 * time.Second, 0.02},
		{parley.WebCall, "", time.Second, 0.01},
	} {
		require.InDelta(t, c.cost, rates.Minutes(c.direction, c.number, c.talked).Float(), 1e-9, "%+v", c)
	}
}

func TestProviderCosts(t *testing.T) {
	t.Parallel()
	rates, err := parley.ReadRates([]byte(`{"providers":{"acme":{"per_minute":0.6,"per_million_input_tokens":2,"per_million_output_tokens":8,"per_thousand_characters":0.1},"acme/small":{"per_million_input_tokens":1}}}`))
	require.NoError(t, err)
	var costs parley.Costs
	for _, u := range []parley.Usage{
		{Part: "transcriber", Provider: "acme", HeardMS: 30_000},
		{Part: "model", Provider: "acme", Key: "big", InputTokens: 1_000_000, OutputTokens: 500_000},
		{Part: "model", Provider: "acme", Key: "small", InputTokens: 1, OutputTokens: 999},
		{Part: "synthesizer", Provider: "acme", Characters: 1500},
		{Part: "multimodal", Provider: "acme", HeardMS: 1},
		{Part: "evaluation", Provider: "acme", Key: "small", InputTokens: 10},
		{Part: "model", Provider: "unknown", InputTokens: 5, HeardMS: 5, Characters: 5},
	} {
		costs.Add(rates, u)
	}
	require.Equal(t, parley.Costs{Transcriber: 300_000, Model: 6_000_001, Synthesizer: 150_000, Multimodal: 10, Evaluation: 10}, costs)
	require.EqualValues(t, 6_450_021, costs.Total())
}

// What was used costs something, never less than its exact price, and less than a millionth more.
func TestCostsAreRoundedUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		price := rapid.Int64Range(1, 100_000_000).Draw(r, "price")
		tokens := rapid.IntRange(1, 10_000_000).Draw(r, "tokens")
		rates := &parley.Rates{Providers: map[string]parley.ProviderRate{"p": {MillionInput: parley.Money(price)}}}
		var costs parley.Costs
		costs.Add(rates, parley.Usage{Part: "model", Provider: "p", InputTokens: tokens})
		exact := float64(price) * float64(tokens) / 1e6
		require.GreaterOrEqual(r, float64(costs.Model), exact-1e-3)
		require.Less(r, float64(costs.Model), exact+1)
		require.Positive(r, costs.Model)
	})
}

func TestRateFiles(t *testing.T) {
	t.Parallel()
	rates, err := parley.ReadRates([]byte(`{}`))
	require.NoError(t, err)
	require.Equal(t, parley.DefaultRates(), rates)
	rates, err = parley.ReadRates([]byte(`{"currency":"EUR","providers":{"openai":{"per_minute":1}}}`))
	require.NoError(t, err)
	require.Equal(t, "EUR", rates.Currency)
	require.Equal(t, parley.ProviderRate{Minute: 1_000_000}, rates.Providers["openai"], "what is named is replaced")
	require.Contains(t, rates.Providers, "deepgram")
	for file, says := range map[string]string{
		``:                                      "cannot be read",
		`[]`:                                    "cannot be read",
		`{"carier":{}}`:                         "unknown field",
		`{"inbound":"cheap"}`:                   "cannot be read",
		`{"inbound":-1}`:                        "inbound price must not be negative",
		`{"inbound":1e300}`:                     "too large",
		`{} {}`:                                 "more than one",
		`{"carrier":{"49":1}}`:                  `"49" must be + and digits`,
		`{"carrier":{"+4x":1}}`:                 `"+4x" must be + and digits`,
		`{"carrier":{"":1}}`:                    "must be + and digits",
		`{"carrier":{"+49":-0.1}}`:              "price of +49 must not be negative",
		`{"providers":{"x":{"per_minute":-1}}}`: "prices of x must not be negative",
		`{"providers":{"x":{"per_thousand_characters":-1}}}`: "prices of x must not be negative",
		`{"providers":{"x":{"per_hour":1}}}`:                 "unknown field",
	} {
		_, err := parley.ReadRates([]byte(file))
		require.ErrorContains(t, err, says, file)
	}
}

func TestMoney(t *testing.T) {
	t.Parallel()
	require.EqualValues(t, 300_000, parley.NewMoney(0.1+0.2))
	text, err := parley.NewMoney(0.014).MarshalJSON()
	require.NoError(t, err)
	require.Equal(t, "0.014", string(text))
	var m parley.Money
	require.NoError(t, m.UnmarshalJSON([]byte("1.25")))
	require.EqualValues(t, 1_250_000, m)
	require.Error(t, m.UnmarshalJSON([]byte(`"1"`)))
}
