package parley

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Rates are what calls cost this installation. An operator's file replaces what it
// names and leaves the rest.
type Rates struct {
	Currency string `json:"currency"`
	// Carrier is the price of a started minute by the prefix of the called number; the
	// longest prefix counts, "+" is everywhere else.
	Carrier map[string]Money `json:"carrier"`
	// Inbound is the price of a started minute of a call that comes in.
	Inbound Money `json:"inbound"`
	// Providers are prices by provider ("deepgram") or by provider and model ("openai/gpt-4o-mini").
	Providers map[string]ProviderRate `json:"providers"`
}

// ProviderRate is what a provider charges for.
type ProviderRate struct {
	Minute             Money `json:"per_minute"` // of sound heard or spoken with
	MillionInput       Money `json:"per_million_input_tokens"`
	MillionOutput      Money `json:"per_million_output_tokens"`
	ThousandCharacters Money `json:"per_thousand_characters"`
}

// Usage is what a provider did in a call.
type Usage struct {
	Part         string `json:"part"` // transcriber, model, synthesizer, multimodal, evaluation
	Provider     string `json:"provider"`
	Key          string `json:"key"`
	HeardMS      int64  `json:"heard_ms"`
	InputTokens  int    `json:"input_tokens"`
	OutputTokens int    `json:"output_tokens"`
	Characters   int    `json:"characters"`
}

// Costs are the parts of what a call cost.
type Costs struct {
	Carrier     Money `json:"carrier"`
	Transcriber Money `json:"transcriber"`
	Model       Money `json:"model"`
	Synthesizer Money `json:"synthesizer"`
	Multimodal  Money `json:"multimodal"`
	Evaluation  Money `json:"evaluation"`
}

// Total is their sum.
func (c *Costs) Total() Money {
	return c.Carrier + c.Transcriber + c.Model + c.Synthesizer + c.Multimodal + c.Evaluation
}

var costsForm = Form[Costs]{
	{Name: "carrier", At: func(c *Costs) any { return money(c.Carrier) }},
	{Name: "transcriber", At: func(c *Costs) any { return money(c.Transcriber) }},
	{Name: "model", At: func(c *Costs) any { return money(c.Model) }},
	{Name: "synthesizer", At: func(c *Costs) any { return money(c.Synthesizer) }},
	{Name: "multimodal", At: func(c *Costs) any { return money(c.Multimodal) }},
	{Name: "evaluation", At: func(c *Costs) any { return money(c.Evaluation) }},
}

// Add counts what a provider did.
func (c *Costs) Add(rates *Rates, u Usage) {
	cost := rates.provider(u)
	switch u.Part {
	case "transcriber":
		c.Transcriber += cost
	case "synthesizer":
		c.Synthesizer += cost
	case "multimodal":
		c.Multimodal += cost
	case "evaluation":
		c.Evaluation += cost
	default:
		c.Model += cost
	}
}

// Minutes is what the carrier charges for a call that was answered: every minute that
// has begun.
func (r *Rates) Minutes(direction Direction, number string, talked time.Duration) Money {
	minutes := Money((talked + time.Minute - 1) / time.Minute)
	if direction != Outbound {
		return minutes * r.Inbound
	}
	prefix, _ := longestPrefix(number, keys(r.Carrier))
	return minutes * r.Carrier[prefix]
}

func (r *Rates) provider(u Usage) Money {
	rate, ok := r.Providers[u.Provider+"/"+u.Key]
	if !ok {
		rate = r.Providers[u.Provider]
	}
	return part(rate.Minute, u.HeardMS, time.Minute.Milliseconds()) +
		part(rate.MillionInput, int64(u.InputTokens), 1e6) +
		part(rate.MillionOutput, int64(u.OutputTokens), 1e6) +
		part(rate.ThousandCharacters, int64(u.Characters), 1e3)
}

// part is the price of n units where so many cost that much, rounded up to a millionth:
// what was used is never free of charge because it was little.
func part(price Money, n, per int64) Money {
	return Money((int64(price)*n + per - 1) / per)
}

func keys[V any](m map[string]V) []string {
	all := make([]string, 0, len(m))
	for k := range m {
		all = append(all, k)
	}
	return all
}

// DefaultRates are list prices in dollars as an operator without a contract would pay
// about. They are there so that costs mean something at once; set your own.
func DefaultRates() *Rates {
	return &Rates{
		Currency: "USD",
		Carrier: prices(map[string]float64{
			"+": 0.10, "+1": 0.014, "+33": 0.02, "+34": 0.02, "+336": 0.05, "+337": 0.05, "+346": 0.05, "+347": 0.05, "+39": 0.02, "+393": 0.05,
			"+44": 0.016, "+447": 0.04, "+49": 0.02, "+4915": 0.05, "+4916": 0.05, "+4917": 0.05, "+61": 0.03, "+81": 0.08, "+91": 0.04, "+55": 0.05, "+52": 0.03,
		}),
		Inbound: NewMoney(0.0085),
		Providers: map[string]ProviderRate{
			Sandbox:              {},
			"openai":             {MillionInput: NewMoney(2.5), MillionOutput: NewMoney(10), ThousandCharacters: NewMoney(0.015), Minute: NewMoney(0.006)},
			"openai/gpt-4o-mini": {MillionInput: NewMoney(0.15), MillionOutput: NewMoney(0.6)},
			"anthropic":          {MillionInput: NewMoney(3), MillionOutput: NewMoney(15)},
			"gemini":             {MillionInput: NewMoney(0.3), MillionOutput: NewMoney(2.5)},
			"deepgram":           {Minute: NewMoney(0.0077)},
			"assemblyai":         {Minute: NewMoney(0.0025)},
			"elevenlabs":         {ThousandCharacters: NewMoney(0.1)},
			"cartesia":           {ThousandCharacters: NewMoney(0.05)},
		},
	}
}

func prices(list map[string]float64) map[string]Money {
	all := make(map[string]Money, len(list))
	for prefix, price := range list {
		all[prefix] = NewMoney(price)
	}
	return all
}

// ReadRates puts an operator's file over the default rates.
func ReadRates(file []byte) (*Rates, error) {
	r := DefaultRates()
	decoder := json.NewDecoder(strings.NewReader(string(file)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(r); err != nil {
		return nil, fmt.Errorf("the rates cannot be read: %w", err)
	}
	if decoder.More() {
		return nil, errors.New("the rates cannot be read: the file holds more than one document")
	}
	if r.Inbound < 0 {
		return nil, errors.New("the inbound price must not be negative")
	}
	for prefix, price := range r.Carrier {
		if !strings.HasPrefix(prefix, "+") || strings.Trim(prefix[1:], "0123456789") != "" {
			return nil, fmt.Errorf("the carrier's prefix %q must be + and digits, such as +49; + alone is everywhere else", prefix)
		}
		if price < 0 {
			return nil, fmt.Errorf("the carrier's price of %s must not be negative", prefix)
		}
	}
	for name, rate := range r.Providers {
		if rate.Minute < 0 || rate.MillionInput < 0 || rate.MillionOutput < 0 || rate.ThousandCharacters < 0 {
			return nil, fmt.Errorf("the prices of %s must not be negative", name)
		}
	}
	return r, nil
}
