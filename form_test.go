package parley_test

import (
	"encoding/json"
	"math"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"parley"
)

// thing has a field of every kind that a form can hold.
type thing struct {
	Text    string
	Word    parley.Mode
	Whole   int
	Ratio   float64
	Price   parley.Decimal
	Yes     bool
	One     parley.Bit
	Ref     parley.ID
	Maybe   *parley.ID
	Note    *string
	Refs    []parley.ID
	Names   []string
	Free    map[string]any
	Parts   []parley.Param
	At      time.Time
	private string
}

var thingForm = parley.Form[thing]{
	{Name: "text", Request: "label", At: func(t *thing) any { return &t.Text }, Rule: parley.Rule{Required: true, Max: 5}},
	{Name: "word", At: func(t *thing) any { return &t.Word }, Rule: parley.Rule{In: []string{"a", "b"}, Words: nil}, Default: parley.Mode("a")},
	{Name: "whole", At: func(t *thing) any { return &t.Whole }, Rule: parley.Rule{Min: 1, Max: 9}, Default: 3},
	{Name: "ratio", At: func(t *thing) any { return &t.Ratio }, Rule: parley.Rule{Max: 1}},
	{Name: "price", At: func(t *thing) any { return &t.Price }},
	{Name: "yes", At: func(t *thing) any { return &t.Yes }},
	{Name: "one", At: func(t *thing) any { return &t.One }},
	{Name: "ref", At: func(t *thing) any { return &t.Ref }},
	{Name: "maybe", At: func(t *thing) any { return &t.Maybe }},
	{Name: "note", At: func(t *thing) any { return &t.Note }},
	{Name: "refs", At: func(t *thing) any { return &t.Refs }, Rule: parley.Rule{Max: 3}, Default: []parley.ID{7}},
	{Name: "names", At: func(t *thing) any { return &t.Names }},
	{Name: "free", At: func(t *thing) any { return &t.Free }, Default: map[string]any{"a": 1}},
	{Name: "at", At: func(t *thing) any { return &t.At }, Rule: parley.Rule{ReadOnly: true}},
	{Name: "secret", At: func(t *thing) any { return &t.private }, Rule: parley.Rule{WriteOnly: true}},
	{Name: "late", At: func(t *thing) any { return &t.private }, Rule: parley.Rule{OnUpdate: true, WriteOnly: true}},
}

func input(t testing.TB, text string) parley.Input {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var in parley.Input
	require.NoError(t, decoder.Decode(&in))
	return in
}

// Absent, null and a value are three different things.
func TestAbsentNullAndValueDiffer(t *testing.T) {
	t.Parallel()
	id, note := parley.ID(5), "n"
	fresh := func() thing { return thing{Text: "old", Maybe: &id, Note: &note, Whole: 4} }

	x := fresh()
	sent, errs := thingForm.Update(input(t, `{}`), &x)
	require.Empty(t, errs)
	require.Empty(t, sent)
	require.Equal(t, fresh(), x)

	x = fresh()
	sent, errs = thingForm.Update(input(t, `{"maybe":null,"note":""}`), &x)
	require.Empty(t, errs)
	require.Equal(t, parley.Sent{"maybe": true, "note": true}, sent)
	require.Nil(t, x.Maybe)
	require.Nil(t, x.Note)

	x = fresh()
	_, errs = thingForm.Update(input(t, `{"whole":null,"text":null}`), &x)
	require.Equal(t, parley.FieldErrors{
		{Field: "text", Messages: []string{"The text field is required."}},
		{Field: "whole", Messages: []string{"The whole must be an integer."}},
	}, errs)
	require.Equal(t, fresh(), x, "what is refused changes nothing")
}

func TestCreateFillsDefaultsThatNobodyShares(t *testing.T) {
	t.Parallel()
	var one, two thing
	_, errs := thingForm.Create(input(t, `{"label":"x"}`), &one)
	require.Empty(t, errs)
	require.Equal(t, parley.Mode("a"), one.Word)
	require.Equal(t, 3, one.Whole)
	_, _ = thingForm.Create(input(t, `{"label":"x"}`), &two)
	one.Refs[0], one.Free["a"] = 99, 99
	require.Equal(t, []parley.ID{7}, two.Refs)
	require.Equal(t, map[string]any{"a": 1}, two.Free)
}

func TestEveryKindAndItsRefusal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, field, says string }{
		{`{"label":"123456"}`, "label", "The label must not be greater than 5 characters."},
		{`{"text":7}`, "text", "The text must be a string."},
		{`{"text":"a\u0000"}`, "text", "The text must not contain NUL characters."},
		{`{"word":"c"}`, "word", "The selected word is invalid. Available: a, b."},
		{`{"whole":0}`, "whole", "The whole must be between 1 and 9."},
		{`{"whole":1e2}`, "whole", "The whole must be an integer."},
		{`{"whole":123456789012345678901}`, "whole", "The whole must be between 1 and 9."},
		{`{"ratio":1.01}`, "ratio", "The ratio must be between 0 and 1."},
		{`{"ratio":1e999}`, "ratio", "The ratio must be between 0 and 1."},
		{`{"ratio":"0.5"}`, "ratio", "The ratio must be a number."},
		{`{"price":"NaN"}`, "price", "The price must be a number."},
		{`{"price":1e999}`, "price", "The price must be a number."},
		{`{"yes":"yes"}`, "yes", "The yes field must be true or false."},
		{`{"one":3}`, "one", "The one field must be true or false."},
		{`{"ref":-1}`, "ref", "The ref must be an integer."},
		{`{"ref":"12x"}`, "ref", "The ref must be an integer."},
		{`{"maybe":{}}`, "maybe", "The maybe must be an integer."},
		{`{"refs":"1"}`, "refs", "The refs must be an array."},
		{`{"refs":[1,2,3,4]}`, "refs", "The refs must not have more than 3 items."},
		{`{"refs":[1,null]}`, "refs.1", "The refs.1 must be an integer."},
		{`{"names":[1]}`, "names.0", "The names.0 must be a string."},
		{`{"free":[1]}`, "free", "The free must be an object."},
		{`{"free":{"x":[1e999]}}`, "free.x.0", "The free.x.0 must be a number of at most 308 digits."},
	} {
		var x thing
		_, errs := thingForm.Update(input(t, c.body), &x)
		require.Equal(t, parley.FieldErrors{{Field: c.field, Messages: []string{c.says}}}, errs, c.body)
		require.Equal(t, thing{}, x, c.body)
	}
	var x thing
	_, errs := thingForm.Update(input(t, `{"label":"ünïcö","word":"b","whole":9,"ratio":1,"price":"0.335","yes":"true","one":1,"ref":"12","maybe":3,"note":"n","refs":["1",2],"names":["n"],"free":[],"secret":"s","late":"l"}`), &x)
	require.Empty(t, errs)
	three, note := parley.ID(3), "n"
	require.Equal(t, thing{Text: "ünïcö", Word: "b", Whole: 9, Ratio: 1, Price: 0.34, Yes: true, One: true, Ref: 12, Maybe: &three, Note: &note,
		Refs: []parley.ID{1, 2}, Names: []string{"n"}, Free: map[string]any{}, private: "l"}, x)
}

func TestReadOnlyAndUpdateOnlyFieldsDoNotBind(t *testing.T) {
	t.Parallel()
	var x thing
	sent, errs := thingForm.Create(input(t, `{"text":"x","at":"2001-01-01","late":"l"}`), &x)
	require.Empty(t, errs)
	require.Equal(t, parley.Sent{"text": true}, sent)
	require.True(t, x.At.IsZero())
	require.Empty(t, x.private)
}

func TestRecord(t *testing.T) {
	t.Parallel()
	three := parley.ID(3)
	at := time.Date(2026, 2, 3, 4, 5, 6, 7_000, time.FixedZone("", 3600))
	b, err := thingForm.AppendRecord(nil, &thing{Text: "<&>\"", Word: "b", Price: 1, One: true, Maybe: &three, Refs: []parley.ID{}, Names: []string{}, Free: map[string]any{}, At: at})
	require.NoError(t, err)
	require.JSONEq(t, `{"text":"<&>\"","word":"b","whole":0,"ratio":0,"price":"1.00","yes":false,"one":1,"ref":0,"maybe":3,"note":null,"refs":[],"names":[],"free":{},"at":"2026-02-03T03:05:06.000007Z"}`, string(b))
}

func TestQuery(t *testing.T) {
	t.Parallel()
	var x thing
	require.Empty(t, thingForm.Query(url.Values{"text": {"x"}, "whole": {"5"}, "word": {""}, "ref": {"4"}, "unknown": {"1"}}, &x))
	require.Equal(t, 5, x.Whole)
	require.Equal(t, parley.Mode("a"), x.Word, "an empty value is not sent")
	require.Equal(t, parley.ID(4), x.Ref)
	errs := thingForm.Query(url.Values{"text": {"x"}, "whole": {"5x"}}, &x)
	require.Equal(t, "The whole must be an integer.", errs[0].Messages[0])
}

func TestFieldErrorsKeepTheirOrderInJSON(t *testing.T) {
	t.Parallel()
	var errs parley.FieldErrors
	errs.Add("z", "first")
	errs.Add("a.0.b", "second")
	errs.Add("z", "third")
	raw, err := json.Marshal(errs)
	require.NoError(t, err)
	require.Equal(t, `{"z":["first","third"],"a.0.b":["second"]}`, string(raw))
	require.Equal(t, 3, errs.Count())
	require.True(t, errs.Under("a"))
	require.False(t, errs.Has("a"))
}

// What the table shows it accepts back, unchanged.
func TestDecimalsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		d := parley.NewDecimal(rapid.Float64Range(-1000, 1000).Draw(r, "d"))
		raw, err := json.Marshal(d)
		require.NoError(r, err)
		require.Regexp(r, `^"-?\d+\.\d\d"$`, string(raw))
		var back parley.Decimal
		require.NoError(r, json.Unmarshal(raw, &back))
		require.InDelta(r, float64(d), float64(back), 1e-9)
	})
	require.Error(t, new(parley.Decimal).UnmarshalJSON([]byte(`"x"`)))
	require.Equal(t, "0.70", parley.NewDecimal(0.7).String())
}

func FuzzE164(f *testing.F) {
	for _, seed := range []string{"+12025550100", "+0", "", "+1 202", "＋12025550100", "+1234567890123456"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		fine := parley.E164(s) == ""
		digits := strings.TrimPrefix(s, "+")
		want := strings.HasPrefix(s, "+") && len(digits) >= 7 && len(digits) <= 15 && digits[0] != '0' && strings.Trim(digits, "0123456789") == ""
		require.Equal(t, want, fine, s)
	})
}

func FuzzForm(f *testing.F) {
	f.Add(`{"label":"x","refs":[1,"2"],"free":{"a":[{}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		var in parley.Input
		if decoder.Decode(&in) != nil {
			return
		}
		var x thing
		_, errs := thingForm.Update(in, &x)
		if len(errs) == 0 {
			require.False(t, math.IsNaN(x.Ratio))
			_, err := thingForm.AppendRecord(nil, &x)
			require.NoError(t, err)
		}
	})
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"http://a", "https://a.example:8443/x?y=z", "http://127.0.0.1", "http://[::1]:80/"} {
		require.Empty(t, parley.URL(good), good)
	}
	for _, bad := range []string{"", "a", "//a", "ftp://a", "http://", "http:///x", "https://a b", "https://a\n", "http://a:0", "http://a:99999", "http://[::1", "javascript:alert(1)", "https://:80"} {
		require.NotEmpty(t, parley.URL(bad), bad)
	}
	for _, good := range []string{"sip.example.com", "sip.example.com:5060", "127.0.0.1", "127.0.0.1:5060", "::1", "[::1]", "[::1]:5060"} {
		require.Empty(t, parley.HostPort(good), good)
	}
	for _, bad := range []string{"", "a b", "sip:a", "a:0", "a:70000", "-a", "a/b", "[::1]:x"} {
		require.NotEmpty(t, parley.HostPort(bad), bad)
	}
	for _, good := range []string{"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires"} {
		require.Empty(t, parley.Zone(good), good)
	}
	for _, bad := range []string{"", "Local", "Mars/Olympus", "../etc/passwd", "europe berlin"} {
		require.NotEmpty(t, parley.Zone(bad), bad)
	}
}

func TestUsersAndPlans(t *testing.T) {
	t.Parallel()
	u, err := parley.NewUser("A.Person@Example.com", "", "")
	require.NoError(t, err)
	require.Equal(t, &parley.User{Email: "a.person@example.com", Name: "A.Person", Plan: "default"}, u)
	require.Equal(t, 5, u.Limits().Tools)
	u.Plan = "long gone"
	require.Equal(t, 5, u.Limits().Tools)
	for _, bad := range []string{"", "a", "a@", "Name <a@b.example>"} {
		_, err := parley.NewUser(bad, "", "")
		require.Equal(t, parley.Invalid, parley.ErrorCode(err), bad)
	}
	secret := parley.NewSecret()
	require.NotEqual(t, secret, parley.NewSecret())
	require.Len(t, parley.HashToken("x"), 32)
}

// Every field of the assistant either has an effect to describe or says that it is reserved.
func TestNoAssistantFieldIsUnexplained(t *testing.T) {
	t.Parallel()
	for _, field := range parley.AssistantForm.Describe() {
		switch field.Name {
		case "id", "uuid", "created_at", "updated_at", "deleted_at":
		default:
			require.NotEmpty(t, field.Effect, field.Name)
		}
	}
}
