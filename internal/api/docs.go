package api

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"parley"
)

//go:embed docs.html
var docsPage string

// mountDocs serves the OpenAPI document and a reference page made from the same
// list of routes. The page loads nothing from anywhere else.
func (s *Server) mountDocs() {
	document := []byte(indented(Document(s.config.Version)))
	page := renderDocs(s.config.Version)
	s.mux.HandleFunc("GET /api/openapi.json", func(w http.ResponseWriter, r *http.Request) {
		newAnswerWriter(w, r).json(http.StatusOK, document)
	})
	s.mux.HandleFunc("GET /docs", func(w http.ResponseWriter, _ *http.Request) {
		header := w.Header()
		header.Set("Content-Type", "text/html; charset=utf-8")
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(page)
	})
	s.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		newAnswerWriter(w, r).json(http.StatusOK, encode(map[string]string{"name": "Parley", "version": s.config.Version, "docs": s.baseURL(r) + "/docs", "api": s.baseURL(r) + "/api"}))
	})
}

type docsGroup struct {
	Name   string
	Anchor string
	Routes []docsRoute
}

type docsRoute struct {
	Route
	Anchor string
	Curl   string
	Fields []docsField
	Params []docsField
	Result string
}

type docsField struct {
	Name, Also, Type, Rule, Effect string
	Required                       bool
}

func renderDocs(version string) []byte {
	var groups []docsGroup
	for _, route := range Routes() {
		i := slices.IndexFunc(groups, func(g docsGroup) bool { return g.Name == route.Group })
		if i < 0 {
			i = len(groups)
			groups = append(groups, docsGroup{Name: route.Group, Anchor: anchor(route.Group)})
		}
		groups[i].Routes = append(groups[i].Routes, docsRoute{
			Route: route, Anchor: anchor(route.Method + " " + route.Path), Curl: curl(route),
			Fields: docsFields(route.Body, route.Updates), Params: docsFields(route.Query, true), Result: result(route.Answer),
		})
	}
	var b bytes.Buffer
	t := template.Must(template.New("docs").Parse(docsPage))
	if err := t.Execute(&b, object{"Version": version, "Groups": groups}); err != nil {
		panic(err) // the page is made of this program's own tables
	}
	return b.Bytes()
}

func anchor(s string) string {
	return strings.Trim(strings.NewReplacer(" ", "-", "/", "-", "{", "", "}", "", "--", "-").Replace(strings.ToLower(s)), "-")
}

func curl(route Route) string {
	var b strings.Builder
	b.WriteString("curl ")
	if route.Method != "GET" {
		b.WriteString("-X " + route.Method + " ")
	}
	b.WriteString("$PARLEY/api" + strings.ReplaceAll(route.Path, "{id}", "12") + ` -H "Authorization: Bearer $TOKEN"`)
	if route.Body != nil {
		b.WriteString(" \\\n  -d '" + indented(bodyExample(route)) + "'")
	}
	return b.String()
}

func indented(v any) string {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // examples are this program's own
	}
	return string(text)
}

func docsFields(fields []parley.FieldDoc, updates bool) (rows []docsField) {
	for _, f := range fields {
		if f.Rule.ReadOnly || f.Rule.OnUpdate && !updates {
			continue
		}
		row := docsField{Name: f.Name, Type: f.Type, Rule: ruleText(f), Effect: f.Effect, Required: f.Rule.Required && !updates}
		if f.Request != "" {
			row.Name, row.Also = f.Request, f.Name
		}
		if f.Nullable {
			row.Type += " or null"
		}
		rows = append(rows, row)
	}
	return rows
}

func ruleText(f parley.FieldDoc) string {
	var parts []string
	r := f.Rule
	switch {
	case r.Words != nil:
		words := []string{}
		for _, w := range r.Words {
			words = append(words, w.Request)
		}
		parts = append(parts, strings.Join(words, " | "))
	case r.In != nil:
		parts = append(parts, strings.Join(r.In, " | "))
	case r.Min != r.Max && (f.Type == "integer" || f.Type == "number"):
		parts = append(parts, fmt.Sprintf("%g to %g", r.Min, r.Max))
	case r.Min > 0:
		parts = append(parts, fmt.Sprintf("%g to %g characters", r.Min, r.Max))
	case r.Max > 0 && f.Type == "array":
		parts = append(parts, fmt.Sprintf("at most %g items", r.Max))
	case r.Max > 0:
		parts = append(parts, fmt.Sprintf("at most %g characters", r.Max))
	}
	for _, e := range f.Elements {
		parts = append(parts, e.Name+": "+strings.TrimSuffix(e.Type+", "+ruleText(e), ", "))
	}
	if f.Default != nil {
		shown, err := json.Marshal(f.Default)
		if err == nil {
			parts = append(parts, "default "+strings.Trim(string(shown), `"`))
		}
	}
	return strings.Join(parts, "; ")
}

// result says what an answer holds, in a word or two.
func result(a Answer) string {
	name := func(schema object) string {
		at, _ := schema["$ref"].(string)
		return at[strings.LastIndexByte(at, '/')+1:]
	}
	switch {
	case a.Message != "":
		return `{"message": "` + a.Message + `", ...}`
	case a.Schema["$ref"] != nil:
		return "a " + name(a.Schema)
	case a.Schema["type"] == "array":
		items, _ := a.Schema["items"].(object)
		return "an array of " + name(items)
	default:
		return "an object"
	}
}
