package parley

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Form is the table of a resource: one line a field. Validation, decoding, the
// record, the OpenAPI document and the reference page all read it, so a field is
// added or changed in one place.
type Form[T any] []Field[T]

// Field is one line of a Form.
type Field[T any] struct {
	Name    string       // the name in the record, accepted in requests too
	Request string       // the name in requests, where it differs; it wins when both are sent
	At      func(*T) any // where the value lives: a pointer to the Go field
	Rule
	Default any    // on creation, when the request does not say
	Effect  string // what the field does, for the reference
	Example any    // for the reference
}

// Rule is what a value must satisfy. The Go type at Field.At already says whether
// it is text, a whole number, a number, a yes-or-no, an id, a list or an object,
// and whether null is a value (a pointer).
type Rule struct {
	Required  bool           // on creation, and never empty afterwards
	Instead   string         // a field that may be sent in place of a required one
	ReadOnly  bool           // never bound from a request
	WriteOnly bool           // never shown in the record
	OnUpdate  bool           // bound on update only
	Absent    bool           // left out of the record when it is null
	Min, Max  float64        // of a number; of the length of a text or list (Min only with Max)
	In        []string       // the allowed words
	Words     []Word         // the request name's own vocabulary, where it differs from the stored one
	Match     *regexp.Regexp // the form of a text
	MatchText string         // what to say when it does not match
	Check     func(string) string
	Each      Elements // the table of a list's elements, or of an object
}

// Word pairs a word of a request with the value it stands for.
type Word struct {
	Request string
	Value   any
}

// Elements is the table of nested values; every Form is one.
type Elements interface {
	decode(raw any, to reflect.Value, path string, errs *FieldErrors)
	Describe() []FieldDoc
}

// Input is a decoded JSON object, its numbers as json.Number.
type Input map[string]any

// lookup finds a value by its literal name or, for a dotted one, inside objects.
func (in Input) lookup(name string) (any, bool) {
	if v, ok := in[name]; ok {
		return v, true
	}
	outer, inner, dotted := strings.Cut(name, ".")
	if !dotted {
		return nil, false
	}
	object, ok := in[outer].(map[string]any)
	if !ok {
		return nil, false
	}
	return Input(object).lookup(inner)
}

// Sent is the set of fields, by record name, that a request supplied.
type Sent map[string]bool

// Create fills to with the defaults and then with what was sent.
func (f Form[T]) Create(in Input, to *T) (Sent, FieldErrors) {
	f.SetDefaults(to)
	return f.bind(in, to, true)
}

// Update changes in to what was sent and nothing else.
func (f Form[T]) Update(in Input, to *T) (Sent, FieldErrors) {
	return f.bind(in, to, false)
}

// Query fills to with the defaults and then with a query string's values. An empty
// value counts as not sent.
func (f Form[T]) Query(values url.Values, to *T) FieldErrors {
	in := Input{}
	for i := range f {
		name := f[i].Name
		value := values.Get(name)
		if value == "" {
			continue
		}
		in[name] = value
		if reflect.TypeOf(f[i].At(to)).Elem().Kind() == reflect.Int && wholeNumber.MatchString(value) {
			in[name] = json.Number(value)
		}
	}
	_, errs := f.Create(in, to)
	return errs
}

var wholeNumber = regexp.MustCompile(`^-?[0-9]+$`)

// SetDefaults gives every field that has one its default.
func (f Form[T]) SetDefaults(to *T) {
	for _, field := range f {
		if field.Default != nil {
			reflect.ValueOf(field.At(to)).Elem().Set(defaultValue(field.Default, field.At(to)))
		}
	}
}

// defaultValue copies lists and maps, so that no two values share one.
func defaultValue(value, at any) reflect.Value {
	target := reflect.TypeOf(at).Elem()
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Map:
		fresh := reflect.MakeMapWithSize(v.Type(), v.Len())
		for _, k := range v.MapKeys() {
			fresh.SetMapIndex(k, v.MapIndex(k))
		}
		v = fresh
	case reflect.Slice:
		fresh := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(fresh, v)
		v = fresh
	}
	return v.Convert(target)
}

func (f Form[T]) bind(in Input, to *T, creating bool) (Sent, FieldErrors) {
	sent := Sent{}
	var errs FieldErrors
	for i := range f {
		field := &f[i]
		if field.ReadOnly || field.OnUpdate && creating {
			continue
		}
		name, raw, ok := field.find(in)
		if !ok {
			if creating && field.Required && !f.sentInstead(field, in) {
				errs.Add(name, Required(name))
			}
			continue
		}
		sent[field.Name] = true
		d := decoder{rule: &field.Rule, path: name, errs: &errs, asked: name == field.Request}
		d.decode(raw, reflect.ValueOf(field.At(to)).Elem())
	}
	return sent, errs
}

// find looks a field up by its request name, then by its record name. The name it
// gives is the one the client knows.
func (f *Field[T]) find(in Input) (name string, raw any, ok bool) {
	if f.Request != "" {
		if raw, ok = in.lookup(f.Request); ok {
			return f.Request, raw, true
		}
	}
	if raw, ok = in.lookup(f.Name); ok {
		return f.Name, raw, true
	}
	if f.Request != "" {
		return f.Request, nil, false
	}
	return f.Name, nil, false
}

func (f Form[T]) sentInstead(field *Field[T], in Input) bool {
	if field.Instead == "" {
		return false
	}
	v, ok := in.lookup(field.Instead)
	return ok && v != nil
}

// decode reads a nested value: an element of a list, or an object.
func (f Form[T]) decode(raw any, to reflect.Value, path string, errs *FieldErrors) {
	object, ok := raw.(map[string]any)
	if !ok {
		errs.Add(path, "The "+Spaced(path)+" must be an object.")
		return
	}
	fresh := new(T)
	f.SetDefaults(fresh)
	for i := range f {
		field := &f[i]
		name := path + "." + field.Name
		value, ok := object[field.Name]
		if !ok {
			if field.Required {
				errs.Add(name, Required(name))
			}
			continue
		}
		d := decoder{rule: &field.Rule, path: name, errs: errs}
		d.decode(value, reflect.ValueOf(field.At(fresh)).Elem())
	}
	to.Set(reflect.ValueOf(fresh).Elem())
}

// decoder turns one JSON value into one Go field, or says what is wrong with it.
type decoder struct {
	rule  *Rule
	path  string
	asked bool // by the request name, which may have its own words
	errs  *FieldErrors
}

func (d *decoder) failf(format string, args ...any) {
	d.errs.Add(d.path, fmt.Sprintf("The "+Spaced(d.path)+" "+format, args...))
}

func (d *decoder) decode(raw any, to reflect.Value) {
	if raw == nil || raw == "" && (d.rule.Required || to.Kind() == reflect.Pointer) {
		switch {
		case to.Kind() == reflect.Pointer:
			to.SetZero()
			return
		case d.rule.Required:
			d.errs.Add(d.path, Required(d.path))
			return
		}
	}
	if d.asked && d.rule.Words != nil {
		d.word(raw, to)
		return
	}
	switch to.Kind() {
	case reflect.Pointer:
		value := reflect.New(to.Type().Elem())
		before := d.errs.Count()
		d.decode(raw, value.Elem())
		if d.errs.Count() == before {
			to.Set(value)
		}
	case reflect.String:
		d.text(raw, to)
	case reflect.Bool:
		d.flag(raw, to)
	case reflect.Int64:
		d.id(raw, to)
	case reflect.Int:
		d.integer(raw, to)
	case reflect.Float64:
		d.number(raw, to)
	case reflect.Map:
		d.object(raw, to)
	case reflect.Slice:
		d.list(raw, to)
	case reflect.Struct:
		d.rule.Each.decode(raw, to, d.path, d.errs)
	default:
		panic("parley: a form cannot hold " + to.Type().String())
	}
}

func (d *decoder) word(raw any, to reflect.Value) {
	words := make([]string, len(d.rule.Words))
	for i, w := range d.rule.Words {
		if raw == w.Request {
			to.Set(reflect.ValueOf(w.Value).Convert(to.Type()))
			return
		}
		words[i] = w.Request
	}
	d.selected(words)
}

func (d *decoder) selected(allowed []string) {
	d.errs.Add(d.path, Selected(d.path, allowed))
}

func (d *decoder) text(raw any, to reflect.Value) {
	s, ok := raw.(string)
	if !ok {
		d.failf("must be a string.")
		return
	}
	if strings.ContainsRune(s, 0) {
		d.failf("must not contain NUL characters.")
		return
	}
	length := float64(utf8.RuneCountInString(s))
	switch {
	case d.rule.Min > 0 && (length < d.rule.Min || length > d.rule.Max):
		d.failf("must be between %s and %s characters.", plain(d.rule.Min), plain(d.rule.Max))
		return
	case d.rule.Max > 0 && length > d.rule.Max:
		d.failf("must not be greater than %s characters.", plain(d.rule.Max))
		return
	case d.rule.In != nil && !slices.Contains(d.rule.In, s):
		d.selected(d.rule.In)
		return
	case d.rule.Match != nil && !d.rule.Match.MatchString(s):
		if d.rule.MatchText != "" {
			d.errs.Add(d.path, d.rule.MatchText)
		} else {
			d.failf("format is invalid.")
		}
		return
	}
	if d.rule.Check != nil {
		if wrong := d.rule.Check(s); wrong != "" {
			d.failf("%s", wrong)
			return
		}
	}
	to.SetString(s)
}

func (d *decoder) flag(raw any, to reflect.Value) {
	switch raw {
	case true, json.Number("1"), "true", "1":
		to.SetBool(true)
	case false, json.Number("0"), "false", "0":
		to.SetBool(false)
	default:
		d.failf("field must be true or false.")
	}
}

func (d *decoder) id(raw any, to reflect.Value) {
	id, ok := ParseID(raw)
	if !ok {
		d.failf("must be an integer.")
		return
	}
	to.SetInt(id)
}

// ParseID reads an id as requests carry it: an integer or a string of digits.
func ParseID(raw any) (ID, bool) {
	var digits string
	switch v := raw.(type) {
	case json.Number:
		digits = v.String()
	case string:
		digits = v
	default:
		return 0, false
	}
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	id, err := strconv.ParseInt(digits, 10, 64)
	return id, err == nil
}

func (d *decoder) integer(raw any, to reflect.Value) {
	n, ok := raw.(json.Number)
	if !ok {
		d.failf("must be an integer.")
		return
	}
	i, err := strconv.ParseInt(n.String(), 10, 32)
	if err != nil {
		if strings.Trim(n.String(), "-0123456789") == "" && d.limited() {
			d.between() // a whole number, only far too large
			return
		}
		d.failf("must be an integer.")
		return
	}
	if d.inRange(float64(i)) {
		to.SetInt(i)
	}
}

func (d *decoder) number(raw any, to reflect.Value) {
	var digits string
	switch v := raw.(type) {
	case json.Number:
		digits = v.String()
	case string:
		// The record shows decimals as strings: what it shows is accepted back.
		if to.Type() == reflect.TypeFor[Decimal]() && decimalText.MatchString(v) {
			digits = v
		}
	}
	if digits == "" {
		d.failf("must be a number.")
		return
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		if d.limited() {
			d.between() // outside what a float holds, so outside the range too
			return
		}
		d.failf("must be a number.")
		return
	}
	if !d.inRange(f) {
		return
	}
	if to.Type() == reflect.TypeFor[Decimal]() {
		f = float64(NewDecimal(f))
	}
	to.SetFloat(f)
}

var decimalText = regexp.MustCompile(`^-?[0-9]{1,18}(\.[0-9]{1,18})?$`)

func (d *decoder) limited() bool { return d.rule.Min != d.rule.Max }

func (d *decoder) inRange(f float64) bool {
	if d.limited() && (f < d.rule.Min || f > d.rule.Max) {
		d.between()
		return false
	}
	return true
}

func (d *decoder) between() {
	d.failf("must be between %s and %s.", plain(d.rule.Min), plain(d.rule.Max))
}

func (d *decoder) object(raw any, to reflect.Value) {
	// Some languages cannot tell an empty object from an empty list.
	if list, ok := raw.([]any); ok && len(list) == 0 {
		raw = map[string]any{}
	}
	object, ok := raw.(map[string]any)
	if !ok {
		d.failf("must be an object.")
		return
	}
	if at, wrong := unkept(object); wrong != "" {
		path := joinPath(d.path, at)
		d.errs.Add(path, "The "+Spaced(path)+" "+wrong)
		return
	}
	to.Set(reflect.ValueOf(object).Convert(to.Type()))
}

// unkept finds what cannot be kept of a JSON value and given back: U+0000, which no
// database column holds, and numbers that no client could read.
func unkept(v any) (path, wrong string) {
	switch v := v.(type) {
	case string:
		if strings.ContainsRune(v, 0) {
			return "", "must not contain NUL characters."
		}
	case json.Number:
		if _, err := v.Float64(); err != nil {
			return "", "must be a number of at most 308 digits."
		}
	case []any:
		for i, e := range v {
			if path, wrong = unkept(e); wrong != "" {
				return joinPath(strconv.Itoa(i), path), wrong
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if _, wrong = unkept(k); wrong != "" {
				return strings.ReplaceAll(k, "\x00", "?"), wrong
			}
			if path, wrong = unkept(v[k]); wrong != "" {
				return joinPath(k, path), wrong
			}
		}
	}
	return "", ""
}

func joinPath(outer, inner string) string {
	if inner == "" {
		return outer
	}
	return outer + "." + inner
}

func (d *decoder) list(raw any, to reflect.Value) {
	list, ok := raw.([]any)
	if !ok {
		d.failf("must be an array.")
		return
	}
	if d.rule.Max > 0 && float64(len(list)) > d.rule.Max {
		d.failf("must not have more than %s items.", plain(d.rule.Max))
		return
	}
	before := d.errs.Count()
	fresh := reflect.MakeSlice(to.Type(), len(list), len(list))
	for i, element := range list {
		path := d.path + "." + strconv.Itoa(i)
		if d.rule.Each != nil {
			d.rule.Each.decode(element, fresh.Index(i), path, d.errs)
			continue
		}
		e := decoder{rule: &Rule{}, path: path, errs: d.errs}
		e.decode(element, fresh.Index(i))
	}
	if d.errs.Count() == before {
		to.Set(fresh)
	}
}

// Spaced is a field name as messages show it: underscores become spaces.
func Spaced(field string) string { return strings.ReplaceAll(field, "_", " ") }

// Required is the message for a missing field.
func Required(field string) string { return "The " + Spaced(field) + " field is required." }

// Selected is the message for a word that is not among the allowed ones.
func Selected(field string, allowed []string) string {
	message := "The selected " + Spaced(field) + " is invalid."
	if len(allowed) > 0 {
		message += " Available: " + strings.Join(allowed, ", ") + "."
	}
	return message
}

func plain(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Zone checks an IANA time zone name. "Local" is the server's, which no user means.
func Zone(name string) string {
	if _, err := time.LoadLocation(name); err != nil || name == "" || name == "Local" {
		return "must be a valid time zone, such as Europe/Berlin."
	}
	return ""
}
