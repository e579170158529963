package parley

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"
)

// AppendRecord writes the record of a resource as its owner sees it: every field
// of the table but the write-only ones and those that are absent when they are null,
// in the table's order.
func (f Form[T]) AppendRecord(b []byte, of *T) ([]byte, error) {
	b = append(b, '{')
	first := true
	for i := range f {
		field := &f[i]
		if field.WriteOnly {
			continue
		}
		at := field.At(of)
		if field.Absent && reflect.ValueOf(at).Elem().IsNil() {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(b, '"')
		b = append(b, field.Name...)
		b = append(b, '"', ':')
		var err error
		if b, err = appendValue(b, at); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// appendValue writes the value a pointer points at; the common kinds without reflection.
func appendValue(b []byte, at any) ([]byte, error) {
	switch v := at.(type) {
	case *int:
		return strconv.AppendInt(b, int64(*v), 10), nil
	case *ID:
		return strconv.AppendInt(b, *v, 10), nil
	case **ID:
		if *v == nil {
			return append(b, "null"...), nil
		}
		return strconv.AppendInt(b, **v, 10), nil
	case *bool:
		return strconv.AppendBool(b, *v), nil
	case *Bit:
		if *v {
			return append(b, '1'), nil
		}
		return append(b, '0'), nil
	case *float64:
		return strconv.AppendFloat(b, *v, 'f', -1, 64), nil
	case *Decimal:
		b = append(b, '"')
		b = strconv.AppendFloat(b, float64(*v), 'f', 2, 64)
		return append(b, '"'), nil
	case *time.Time:
		b = append(b, '"')
		b = v.UTC().AppendFormat(b, "2006-01-02T15:04:05.000000Z")
		return append(b, '"'), nil
	case **time.Time:
		if *v == nil {
			return append(b, "null"...), nil
		}
		return appendValue(b, *v)
	case *string:
		return appendText(b, *v)
	case **string:
		if *v == nil {
			return append(b, "null"...), nil
		}
		return appendText(b, **v)
	case *Direction:
		return appendText(b, string(*v))
	case *AssistantStatus:
		return appendText(b, string(*v))
	case *Mode:
		return appendText(b, string(*v))
	case *[]Header:
		return appendList(b, *v, headerForm.AppendRecord)
	case *[]Param:
		return appendList(b, *v, toolParamForm.AppendRecord)
	case *[]toolRef:
		return appendList(b, *v, appendToolRef)
	case *[]string:
		return appendList(b, *v, func(b []byte, s *string) ([]byte, error) { return appendText(b, *s) })
	case *FillerConfig:
		return fillerForm.AppendRecord(b, v)
	default:
		return appendAny(b, at)
	}
}

func appendAny(b []byte, v any) ([]byte, error) {
	encoded, err := json.Marshal(v)
	return append(b, encoded...), err
}

// appendText writes what json.Marshal writes, at once where nothing needs its care.
func appendText(b []byte, s string) ([]byte, error) {
	start := len(b)
	b = append(b, '"')
	from := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"', c == '\\':
			b = append(append(b, s[from:i]...), '\\', c)
			from = i + 1
		case c == '\n':
			b = append(append(b, s[from:i]...), '\\', 'n')
			from = i + 1
		case c < ' ', c >= 0x7f, c == '<', c == '>', c == '&':
			return appendAny(b[:start], s)
		}
	}
	return append(append(b, s[from:]...), '"'), nil
}

// appendList writes an array, or null for a list that is nil.
func appendList[T any](b []byte, list []T, each func([]byte, *T) ([]byte, error)) (_ []byte, err error) {
	if list == nil {
		return append(b, "null"...), nil
	}
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = each(b, &list[i]); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// FieldDoc describes a field to whoever documents the interface.
type FieldDoc struct {
	Name     string
	Request  string
	Type     string // a JSON type of a request: string, integer, number, boolean, object, array; any for whatever a user sends
	Shown    string // the JSON type in the record, where it differs
	Items    string // the JSON type of a list's elements
	ID       bool   // an id, or a list of them: strings of digits are accepted too
	Nullable bool
	Rule     Rule
	Default  any
	Effect   string
	Example  any
	Elements []FieldDoc // of an object, or of a list's elements
}

// Describe is the table for a reader.
func (f Form[T]) Describe() []FieldDoc {
	var zero T
	docs := make([]FieldDoc, 0, len(f))
	for i := range f {
		field := &f[i]
		doc := FieldDoc{
			Name: field.Name, Request: field.Request, Rule: field.Rule,
			Default: field.Default, Effect: field.Effect, Example: field.Example,
		}
		kind := reflect.TypeOf(field.At(&zero)).Elem()
		if kind.Kind() == reflect.Pointer {
			doc.Nullable = true
			kind = kind.Elem()
		}
		doc.Type = jsonType(kind)
		switch kind {
		case reflect.TypeFor[Decimal]():
			doc.Shown = "string"
		case reflect.TypeFor[Bit]():
			doc.Shown = "integer"
		}
		doc.ID = kind.Kind() == reflect.Int64
		if kind.Kind() == reflect.Slice {
			doc.Items, doc.ID = jsonType(kind.Elem()), kind.Elem().Kind() == reflect.Int64
		}
		if field.Each != nil {
			doc.Elements = field.Each.Describe()
		}
		docs = append(docs, doc)
	}
	return docs
}

func jsonType(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "string"
	case t.Kind() == reflect.Interface:
		return "any"
	case t.Kind() == reflect.Bool:
		return "boolean"
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return "integer"
	case t.Kind() == reflect.Float64:
		return "number"
	case t.Kind() == reflect.Slice:
		return "array"
	case t.Kind() == reflect.Map, t.Kind() == reflect.Struct:
		return "object"
	default:
		return "string"
	}
}
