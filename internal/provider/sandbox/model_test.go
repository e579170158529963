package sandbox

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parley/internal/converse"
)

// dialogue drives the model as an engine would.
type dialogue struct {
	t      *testing.T
	model  *Model
	prompt converse.Prompt
	tool   func(converse.ToolCall) string
	ended  *converse.ToolCall
	calls  []converse.ToolCall
}

func newDialogue(t *testing.T, system string, tools ...converse.ToolSpec) *dialogue {
	t.Helper()
	return &dialogue{t: t, model: New(Options{}).Model(), prompt: converse.Prompt{System: system, Tools: tools},
		tool: func(converse.ToolCall) string { return `{"status": "shipped"}` }}
}

// say gives the customer's words and returns all the model says until it waits.
func (d *dialogue) say(text string) string {
	d.t.Helper()
	if text != "" {
		d.prompt.Messages = append(d.prompt.Messages, converse.Message{Role: converse.RoleCustomer, Text: text})
	}
	var spoken []string
	for range 5 {
		text, calls := d.reply()
		if text != "" {
			spoken = append(spoken, text)
		}
		d.prompt.Messages = append(d.prompt.Messages, converse.Message{Role: converse.RoleAssistant, Text: text, ToolCalls: calls})
		for _, c := range calls {
			d.calls = append(d.calls, c)
			if c.Name == endCall {
				d.ended = &c
				return strings.Join(spoken, " ")
			}
			d.prompt.Messages = append(d.prompt.Messages, converse.Message{Role: converse.RoleTool, ToolCallID: c.ID, Text: d.tool(c)})
		}
		if len(calls) == 0 {
			break
		}
	}
	return strings.Join(spoken, " ")
}

func (d *dialogue) reply() (string, []converse.ToolCall) {
	d.t.Helper()
	var b strings.Builder
	var calls []converse.ToolCall
	_, err := d.model.Reply(d.t.Context(), d.prompt, func(delta converse.Delta) {
		b.WriteString(delta.Text)
		if delta.ToolCall != nil {
			calls = append(calls, *delta.ToolCall)
		}
	})
	require.NoError(d.t, err)
	return b.String(), calls
}

var (
	endTool = converse.ToolSpec{Name: "end_call", Description: "Ends the call.", Params: []converse.ParamSpec{{Name: "reason", Type: "string"}}}
	order   = converse.ToolSpec{Name: "get_order_status", Description: "Looks up the status of an order.",
		Params: []converse.ParamSpec{{Name: "order_number", Type: "string", Description: "The order number.", Required: true}}}
	booking = converse.ToolSpec{Name: "book_appointment", Description: "Books an appointment.", Params: []converse.ParamSpec{
		{Name: "customer_name", Type: "string", Description: "Their name.", Required: true},
		{Name: "date", Type: "string", Description: "When they want to come.", Required: true},
		{Name: "people", Type: "number", Description: "How many people?", Required: true},
	}}
	hours    = converse.ToolSpec{Name: "opening_hours", Description: "Tells the opening hours of the shop."}
	transfer = converse.ToolSpec{Name: "transfer_call", Params: []converse.ParamSpec{{Name: "number", Type: "string", Required: true}}}
)

func TestModelLooksUpAnOrder(t *testing.T) {
	t.Parallel()
	d := newDialogue(t, "You help customers of Acme.", order, endTool)
	require.Equal(t, "Hello, how can I help you?", d.say(""))
	require.Equal(t, "What is your order number?", d.say("Hello, I want to know where my parcel is."))
	require.Equal(t, "Let me check that for you. Here is what I found: status is shipped. I have everything I need. Is there anything else I can do for you?",
		d.say("It's four seven one one."))
	require.Equal(t, []converse.ToolCall{{ID: "call_1", Name: "get_order_status", Arguments: map[string]any{"order_number": "4711"}}}, d.calls)

	d.tool = func(converse.ToolCall) string { return `{"error": "timeout", "message": "The shop did not answer."}` }
	require.Contains(t, d.say("Yes, my other order number is 4712."), "I am sorry, the get order status did not work: The shop did not answer.")
	require.Len(t, d.calls, 2, "another order is another call")
	d.say("What about order number 4712?")
	require.Len(t, d.calls, 2, "never twice with the same arguments")

	require.Equal(t, "Thank you for your time. Goodbye.", d.say("No, thank you. Goodbye!"))
	require.Equal(t, &converse.ToolCall{ID: "call_3", Name: "end_call", Arguments: map[string]any{"reason": "completed"}}, d.ended)
}

func TestModelBooksAnAppointment(t *testing.T) {
	t.Parallel()
	d := newDialogue(t, "Ask for: email (Where may we send the confirmation?)\nClosing: See you soon!", booking, hours, endTool)
	d.prompt.Messages = []converse.Message{{Role: converse.RoleAssistant, Text: "Hello, this is Acme. Do you have a minute?"}}
	require.Equal(t, "Where may we send the confirmation?", d.say("Yes, sure."))
	require.Equal(t, "Thank you. I have everything I need. Is there anything else I can do for you?", d.say("To ada at example dot com, please."))
	require.Equal(t, "What is your name?", d.say("I would like an appointment."))
	require.Equal(t, "Thank you. Which date would suit you?", d.say("My name is Ada Lovelace."))
	require.Equal(t, "Thank you. How many people?", d.say("Tomorrow at ten, please."))
	d.tool = func(converse.ToolCall) string { return `{"message": "Booked for tomorrow."}` }
	require.Equal(t, "Let me check that for you. Booked for tomorrow. Is there anything else I can do for you?", d.say("There will be three of us."))
	require.Equal(t, map[string]any{"customer_name": "Ada Lovelace", "date": "Tomorrow at ten", "people": int64(3)}, d.calls[0].Arguments)
	d.tool = func(converse.ToolCall) string { return `"nine to five"` }
	require.Contains(t, d.say("When are you open? What are your opening hours?"), "nine to five")
	require.Equal(t, "See you soon!", d.say("No."))
	require.NotNil(t, d.ended)
}

func TestModelEndsAndTransfers(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]struct{ text, reason string }{
		"Please stop calling me.":                         {optOutSentence, "opt_out"},
		"Do not call me again!":                           {optOutSentence, "opt_out"},
		"Don’t ever call this number.":                    {optOutSentence, "opt_out"},
		"Take me off your list, please.":                  {optOutSentence, "opt_out"},
		"I'm not interested.":                             {refusalSentence, "not_interested"},
		"Goodbye.":                                        {closingSentence, "completed"},
		"That's all, thanks. Have a nice day.":            {closingSentence, "completed"},
		"No thanks.":                                      {closingSentence, "completed"},
		"Sorry, wrong number.":                            {refusalSentence, "not_interested"},
		"I never want to be called again, don't call me.": {optOutSentence, "opt_out"},
	} {
		d := newDialogue(t, "", endTool)
		require.Equal(t, want.text, d.say(said), said)
		require.Equal(t, want.reason, d.ended.Arguments["reason"], said)
		plain := newDialogue(t, "", converse.ToolSpec{Name: "end_call"})
		plain.say(said)
		require.Empty(t, plain.ended.Arguments, "a parameter that is not offered is not given")
		none := newDialogue(t, "")
		require.Equal(t, want.text, none.say(said))
		require.Empty(t, none.calls)
	}
	d := newDialogue(t, "Transfer to: +12025550100", transfer, endTool)
	d.tool = func(converse.ToolCall) string { return "ok" }
	require.Equal(t, transferSentence, d.say("Can I speak to a human?"))
	require.Equal(t, map[string]any{"number": "+12025550100"}, d.calls[0].Arguments)
	require.Contains(t, newDialogue(t, "", endTool).say("Can I speak to a human?"), noHumanSentence)
	menu := newDialogue(t, "", converse.ToolSpec{Name: "send_dtmf", Params: []converse.ParamSpec{{Name: "digits", Type: "string"}}})
	menu.say("For sales, press two. Press 1 to speak to someone.")
	require.Equal(t, map[string]any{"digits": "1"}, menu.calls[0].Arguments)
}

func TestModelFollowsItsScript(t *testing.T) {
	t.Parallel()
	d := newDialogue(t, `You are friendly.
		Greeting: Hi, this is Acme.
		When asked about price or cost, say: It costs ten euros.
		- When asked about delivery, say: It takes two days.
		* Ask for: name
		Ask for: newsletter (yes or no: they want the newsletter)`, endTool)
	require.Equal(t, "Hi, this is Acme. What is your name?", d.say(""))
	require.Equal(t, "It costs ten euros. What is your name?", d.say("What are the prices?"))
	require.Equal(t, "Hi, this is Acme. What is your name?", newDialogue(t, d.prompt.System).say(""))
	require.Contains(t, d.say("Ada."), "yes or no")
	require.Contains(t, d.say("Yes, please."), "I have everything I need.")
	require.Equal(t, unheardSentence, d.say("…"))
	require.Equal(t, "I am fine, thank you. "+moreSentence, d.say("How are you?"))
	require.Equal(t, "I am fine, thank you. "+moreSentence, d.say("Pardon me, could you repeat that?"))
}

// TestModelGivesUpAsking: nobody is asked for ever.
func TestModelGivesUpAsking(t *testing.T) {
	t.Parallel()
	d := newDialogue(t, "Ask for: order number")
	asked := 0
	for range 6 {
		if strings.Contains(d.say("Well, I wonder?"), "order number") {
			asked++
		}
	}
	require.Equal(t, patience, asked)
}

func TestSpokenNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"4711": "4711", "It is 4711.": "4711", "four seven one one": "4711", "forty-seven eleven": "4711", "4 7 1 1": "4711",
		"twenty-three": "23", "one hundred and five": "105", "two thousand and five": "2005", "oh seven": "07", "12.5 percent": "12.5",
		"nineteen eighty-four": "1984", "three hundred thousand": "300000", "$1,250": "1250", "zero": "0", "one two three": "123",
		"five hundred twenty three": "523",
	} {
		got, ok := spokenNumber(text)
		require.True(t, ok, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "hello", "and", "hundred", "a b c"} {
		_, ok := spokenNumber(text)
		require.False(t, ok, text)
	}
}

func TestWhatIsLearnt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, kind, said string
		asked            bool
		want             any
	}{
		{"order_number", "string", "My order number is 4711.", false, "4711"},
		{"order_number", "string", "It's about order number AB-123, please.", false, "AB-123"},
		{"orderNumber", "number", "The order number is four seven one one, and I am in a hurry.", false, int64(4711)},
		{"name", "string", "My name is Ada.", false, "Ada"},
		{"customer_name", "string", "Hello, this is Ada Lovelace speaking.", false, "Ada Lovelace"},
		{"name", "string", "Ada.", true, "Ada"},
		{"name", "string", "Hello?", true, nil},
		{"name", "string", "I am fine.", false, nil},
		{"date", "string", "Tomorrow at ten.", false, "Tomorrow at ten"},
		{"appointment_time", "string", "How about Monday morning at 10:30?", false, "Monday morning at 10:30"},
		{"time", "string", "Ten o'clock.", true, "Ten o'clock"},
		{"email", "string", "Write to Ada.Lovelace@example.com.", false, "ada.lovelace@example.com"},
		{"email", "string", "ada dot lovelace at example dot co dot uk", false, "ada.lovelace@example.co.uk"},
		{"phone", "string", "Call me at +49 (30) 123-4567.", false, "+49301234567"},
		{"city", "string", "My city is Berlin, you know.", false, "Berlin"},
		{"city", "string", "Well, it's Berlin.", true, "Berlin"},
		{"agrees", "boolean", "Yes.", true, true},
		{"agrees", "boolean", "No, not really.", true, false},
		{"agrees", "boolean", "Yes.", false, nil},
		{"age", "number", "I'm thirty-six.", true, int64(36)},
		{"price", "number", "The price was 12.50 euros", false, 12.5},
	} {
		w := newWanted(converse.ParamSpec{Name: c.name, Type: c.kind})
		got, known := w.hear(c.said, c.asked)
		if c.want == nil {
			require.False(t, known, "%s from %q is %v", c.name, c.said, got)
			continue
		}
		require.Equal(t, c.want, got, "%s from %q", c.name, c.said)
	}
}

func TestExtract(t *testing.T) {
	t.Parallel()
	d := newDialogue(t, "", order, endTool)
	d.say("")
	d.say("I am Ada. Where is my parcel?")
	d.say("4711")
	d.say("No, goodbye.")
	extract := func(messages []converse.Message) map[string]any {
		p := d.prompt
		p.Messages = messages
		p.Extract = []converse.ParamSpec{
			{Name: "status", Type: "bool", Description: "objective reached"}, {Name: "summary", Type: "string", Description: "of the call"},
			{Name: "order_number", Type: "number"}, {Name: "name", Type: "string"}, {Name: "budget", Type: "number"}, {Name: "opt_out", Type: "boolean"},
		}
		var b strings.Builder
		usage, err := d.model.Reply(t.Context(), p, func(delta converse.Delta) { b.WriteString(delta.Text) })
		require.NoError(t, err)
		require.Positive(t, usage.InputTokens)
		require.Equal(t, len(strings.Fields(b.String())), usage.OutputTokens)
		var object map[string]any
		require.NoError(t, json.Unmarshal([]byte(b.String()), &object), b.String())
		require.True(t, strings.HasPrefix(b.String(), `{"status": `))
		return object
	}
	require.Equal(t, map[string]any{
		"status": true, "summary": "The customer gave order number: 4711. The assistant used get_order_status.",
		"order_number": 4711.0, "name": "Ada", "budget": nil, "opt_out": false,
	}, extract(d.prompt.Messages))
	refused := extract([]converse.Message{{Role: converse.RoleAssistant, Text: "Hello"}, {Role: converse.RoleCustomer, Text: "Stop calling me."}})
	require.Equal(t, false, refused["status"])
	require.Equal(t, true, refused["opt_out"])
	require.Nil(t, refused["name"])
	require.Equal(t, "The customer said nothing.", extract(nil)["summary"])
}

// TestModelDelays: tokens come when the model's name says.
func TestModelDelays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		times := func(o Options, model string) (out []time.Duration) {
			began := time.Now()
			_, err := New(o).Model().Reply(t.Context(), converse.Prompt{Model: model}, func(converse.Delta) { out = append(out, time.Since(began)) })
			require.NoError(t, err)
			return out
		}
		ms := time.Millisecond
		require.Equal(t, []time.Duration{0, 0, 0, 0, 0, 0}, times(Options{}, "instant"))
		require.Equal(t, []time.Duration{200 * ms, 220 * ms, 240 * ms, 260 * ms, 280 * ms, 300 * ms}, times(Options{}, "realistic"))
		require.Equal(t, []time.Duration{50 * ms, 51 * ms, 52 * ms, 53 * ms, 54 * ms, 55 * ms}, times(Options{Delays: Delays{FirstToken: 50 * ms, Token: ms}}, "instant"))
	})
}

// TestModelNeverFails: whatever is said, the answer is some text or a tool call
// of those offered, the same every time, with unique ids; and an extraction is an
// object with the fields asked for.
func TestModelNeverFails(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		phrase := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			"yes", "no", "my name is", "order number", "4711", "tomorrow at ten", "goodbye", "press 1", "what?", "…", "a human please", "stop calling"}))
		d := newDialogue(t, rapid.OneOf(rapid.String(), rapid.Just("Ask for: name\nAsk for: x (number)\nWhen asked about x, say: y")).Draw(r, "system"),
			order, booking, hours, endTool, transfer)
		d.tool = func(converse.ToolCall) string {
			return rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"{}", "[1,2]", `{"a":{"b":null}}`, "error: x"})).Draw(r, "result")
		}
		for range rapid.IntRange(1, 6).Draw(r, "turns") {
			d.say(rapid.Custom(func(r *rapid.T) string { return phrase.Draw(r, "a") + " " + phrase.Draw(r, "b") }).Draw(r, "said"))
			if d.ended != nil {
				break
			}
		}
		seen := map[string]bool{}
		for _, c := range d.calls {
			require.False(r, seen[c.ID])
			seen[c.ID] = true
			arguments, err := json.Marshal(c.Arguments)
			require.NoError(r, err)
			require.False(r, seen[c.Name+string(arguments)] && c.Name != sendDTMF && c.Name != transferCall, "twice: %s %s", c.Name, arguments)
			seen[c.Name+string(arguments)] = true
		}
		first, _ := d.reply()
		second, _ := d.reply()
		require.Equal(r, first, second)
		d.prompt.Extract = []converse.ParamSpec{{Name: "status", Type: "bool"}, {Name: "name", Type: "string"}, {Name: "age", Type: "number"}}
		text, _ := d.reply()
		var object struct {
			Status *bool
			Name   *string
			Age    *float64
		}
		require.NoError(r, json.Unmarshal([]byte(text), &object), fmt.Sprint(text))
	})
}
