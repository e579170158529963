package api

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"parley"
)

// object is a part of the OpenAPI document.
type object = map[string]any

// Answer documents an endpoint's success.
type Answer struct {
	Status  int
	Schema  object
	Message string // of an envelope
	Stream  bool   // server-sent events instead of JSON
}

// Failure documents one way an endpoint refuses.
type Failure struct {
	Status  int
	When    string
	Message string
	Errors  example
}

// example shows field errors.
type example map[string][]string

func ref(name string) object     { return object{"$ref": "#/components/schemas/" + name} }
func arrayOf(name string) object { return object{"type": "array", "items": ref(name)} }
func bare(schema object) Answer  { return Answer{Status: http.StatusOK, Schema: schema} }

// reserved is the data of an answer that has none.
var reserved = object{"type": "array", "maxItems": 0, "items": object{}}

// changed is the envelope of a change; data may be nil.
func changed(status int, message string, data object) Answer {
	properties := object{"message": object{"type": "string", "const": message}}
	if data != nil {
		properties["data"] = data
	}
	return Answer{Status: status, Schema: closed(properties), Message: message}
}

// closed is an object with exactly these properties.
func closed(properties object) object {
	return object{"type": "object", "properties": properties, "required": slices.Sorted(maps.Keys(properties)), "additionalProperties": false}
}

func pageOf(name string) object {
	address, nullable := object{"type": "string", "format": "uri"}, object{"type": []string{"string", "null"}}
	count, place := object{"type": "integer"}, object{"type": []string{"integer", "null"}}
	return closed(object{
		"current_page": count, "data": arrayOf(name), "first_page_url": address, "from": place, "last_page": count, "last_page_url": address,
		"links":         object{"type": "array", "items": closed(object{"url": nullable, "label": object{"type": "string"}, "active": object{"type": "boolean"}})},
		"next_page_url": nullable, "path": address, "per_page": count, "prev_page_url": nullable, "to": place, "total": count,
	})
}

var newAPIKey = Answer{Status: http.StatusCreated, Schema: closed(object{
	"message": object{"type": "string", "const": "API key created successfully"},
	"api_key": closed(object{"id": object{"type": "integer"}, "name": object{"type": "string"},
		"token": object{"type": "string", "pattern": `^[0-9]+\|[A-Za-z0-9]{40,}$`, "examples": []any{"2|kR3v..."}}, "created_at": object{"type": "string"}}),
})}

var campaignSwitched = Answer{Status: http.StatusOK, Schema: closed(object{
	"message": object{"type": "string", "enum": []string{parley.CampaignStarted, parley.CampaignHasStopped}},
	"success": object{"type": "boolean", "const": true},
	"data":    closed(object{"campaign_id": object{"type": "integer"}, "status": object{"type": "string", "enum": words(parley.CampaignStatuses)}}),
})}

var leadsImported = changed(http.StatusOK, "Leads imported successfully", closed(object{
	"imported": object{"type": "integer"}, "duplicates": object{"type": "integer", "description": "Lines whose number the campaign has already; they were skipped."},
	"blacklisted":   object{"type": "integer", "description": "Of the imported, those on the do-not-call list."},
	"invalid_count": object{"type": "integer", "description": "Lines that were not imported."},
	"invalid": object{"type": "array", "maxItems": maxInvalid, "description": "The first of those lines, and what is wrong with them.",
		"items": closed(object{"line": object{"type": "integer"}, "reason": object{"type": "string"}})},
}))

// schemas are the records the API shows, by name.
func schemas() object {
	message := object{"message": object{"type": "string"}}
	invalid := object{"message": object{"type": "string"},
		"errors": object{"type": "object", "minProperties": 1, "additionalProperties": object{"type": "array", "minItems": 1, "items": object{"type": "string"}}}}
	return object{
		"Tool":           recordSchema(parley.ToolForm.Describe()),
		"Exchange":       recordSchema(parley.ExchangeForm.Describe()),
		"Assistant":      recordSchema(parley.AssistantForm.Describe()),
		"PhoneNumber":    recordSchema(parley.PhoneNumberForm.Describe()),
		"OwnPhoneNumber": recordSchema(parley.OwnNumberForm.Describe()),
		"SIPTrunk":       recordSchema(parley.TrunkForm.Describe()),
		"APIKey":         recordSchema(parley.TokenForm.Describe()),
		"Campaign":       recordSchema(parley.CampaignForm.Describe()),
		"Lead":           recordSchema(parley.LeadForm.Describe()),
		"Forecast":       recordSchema(parley.ForecastForm.Describe()),
		"DoNotCall":      recordSchema(parley.DoNotCallForm.Describe()),
		"Delivery":       recordSchema(parley.DeliveryForm.Describe()),
		"Call":           recordSchema(parley.CallForm.Describe()),
		"Voice":          recordSchema(voiceForm.Describe()),
		"Model":          recordSchema(modelForm.Describe()),
		"Language":       recordSchema(languageForm.Describe()),
		"AssistantSummary": closed(object{"id": object{"type": "integer"}, "name": object{"type": "string"}, "status": object{"enum": []string{"active", "inactive"}},
			"type": object{"enum": []string{"inbound", "outbound"}}, "mode": object{"enum": []string{"pipeline", "multimodal"}}}),
		"User": closed(object{"id": object{"type": "integer"}, "name": object{"type": "string"}, "email": object{"type": "string"}, "plan": object{"type": "string"},
			"total_balance": object{"type": "number"},
			"limits": closed(object{"tools": object{"type": []string{"integer", "null"}, "description": "null: no limit"},
				"requests_per_second": object{"type": []string{"integer", "null"}, "description": "null: no limit"},
				"parallel_calls":      object{"type": []string{"integer", "null"}}, "calls_per_second": object{"type": []string{"integer", "null"}},
				"minutes_per_day": object{"type": []string{"integer", "null"}}, "spend_per_day": object{"type": []string{"number", "null"}}})}),
		"Message":        closed(message),
		"Invalid":        closed(invalid),
		"FlaggedMessage": flagged(message),
		"FlaggedInvalid": flagged(invalid),
		"TooManyAttempts": object{"type": "object", "required": []string{"message", "retry_after"}, "additionalProperties": false, "properties": object{
			"message": object{"type": "string", "const": "Too Many Attempts."}, "retry_after": object{"type": "integer"},
			"reason": object{"type": "string", "description": "Which limit of the account it is; not sent for the rate of requests."}}},
	}
}

// flagged is a refusal with these properties that says so in a flag too.
func flagged(properties object) object {
	properties = maps.Clone(properties)
	properties["success"] = object{"type": "boolean", "const": false}
	return closed(properties)
}

// recordSchema is a record as lists and look-ups show it: every field, always, but
// those that are absent when they have no value.
func recordSchema(fields []parley.FieldDoc) object {
	properties, always := object{}, []string{}
	for _, f := range fields {
		if f.Rule.WriteOnly {
			continue
		}
		if !f.Rule.Absent {
			always = append(always, f.Name)
		}
		p := object{"type": f.Type}
		switch {
		case f.Type == "any":
			p = object{}
		case f.Shown == "string":
			p = object{"type": "string", "pattern": `^[0-9]+\.[0-9]{2}$`}
		case f.Shown == "integer":
			p = object{"type": "integer", "enum": []int{0, 1}}
		case f.Type == "array" && f.Elements != nil:
			p["items"] = recordSchema(f.Elements)
		case f.Type == "array":
			p["items"] = object{"type": f.Items}
		case f.Elements != nil:
			p = recordSchema(f.Elements)
		case f.Rule.In != nil:
			p["enum"] = f.Rule.In
		}
		describe(p, f)
		if f.Nullable && !f.Rule.Absent {
			p["type"] = []string{f.Type, "null"}
			if words, ok := p["enum"].([]string); ok {
				p["enum"] = append(anyOf(words), nil)
			}
		}
		properties[f.Name] = p
	}
	schema := closed(properties)
	schema["required"] = always
	return schema
}

func anyOf(words []string) (values []any) {
	for _, word := range words {
		values = append(values, word)
	}
	return values
}

func describe(p object, f parley.FieldDoc) {
	if f.Effect != "" {
		p["description"] = f.Effect
	}
}

// inputSchema is a request's body. A field is accepted under both of its names.
func inputSchema(fields []parley.FieldDoc, updates bool) object {
	properties, needs := object{}, []any{}
	for _, f := range fields {
		if f.Rule.ReadOnly || f.Rule.OnUpdate && !updates {
			continue
		}
		names := []string{f.Name}
		if f.Request != "" {
			names = []string{f.Request, f.Name}
		}
		for _, name := range names {
			setProperty(properties, name, inputProperty(f, name == f.Request))
		}
		if f.Rule.Required && !updates {
			if f.Rule.Instead != "" {
				names = append(names, f.Rule.Instead)
			}
			needs = append(needs, anyName(names))
		}
	}
	schema := object{"type": "object", "properties": properties}
	if len(needs) > 0 {
		schema["allOf"] = needs
	}
	return schema
}

// setProperty puts a dotted name inside the object it belongs to.
func setProperty(properties object, name string, p object) {
	outer, inner, dotted := strings.Cut(name, ".")
	if !dotted {
		properties[name] = p
		return
	}
	properties[outer] = object{"type": "object", "properties": object{inner: p}}
}

func anyName(names []string) object {
	if len(names) == 1 {
		return object{"required": names}
	}
	options := []any{}
	for _, name := range names {
		options = append(options, object{"required": []string{name}})
	}
	return object{"anyOf": options}
}

func inputProperty(f parley.FieldDoc, asked bool) object {
	p := object{}
	types := []string{f.Type}
	switch {
	case asked && f.Rule.Words != nil:
		words := []string{}
		for _, w := range f.Rule.Words {
			words = append(words, w.Request)
		}
		types, p["enum"] = []string{"string"}, words
	case f.Type == "boolean":
		types, p["enum"] = nil, []any{true, false, 0, 1, "true", "false"}
	case f.Rule.In != nil:
		p["enum"] = f.Rule.In
	case f.Type == "array" && f.Elements != nil:
		p["items"] = inputSchema(f.Elements, false)
	case f.Type == "array" && f.ID:
		p["items"] = object{"type": []string{"integer", "string"}, "pattern": digits}
	case f.Type == "array":
		p["items"] = object{"type": f.Items}
	case f.Elements != nil:
		p = inputSchema(f.Elements, false)
	case f.ID:
		types, p["pattern"] = append(types, "string"), digits
	case f.Shown == "string": // a decimal, which the record shows as a string
		types = append(types, "string")
	}
	if f.Nullable {
		types = append(types, "null")
		if f.ID {
			p["pattern"] = "^[0-9]*$" // an empty string means null
		}
	}
	if types != nil {
		p["type"] = types
	}
	limits(p, f)
	describe(p, f)
	if f.Default != nil && (!asked || f.Rule.Words == nil) {
		p["default"] = f.Default
	}
	if f.Example != nil && (f.Request == "" || asked || f.Rule.Words == nil) {
		p["examples"] = []any{f.Example}
	}
	return p
}

// digits is the pattern of an id sent as a string.
const digits = "^[0-9]+$"

func limits(p object, f parley.FieldDoc) {
	r := f.Rule
	if r.Min == r.Max {
		return
	}
	switch f.Type {
	case "integer", "number":
		p["minimum"], p["maximum"] = r.Min, r.Max
	case "string":
		p["maxLength"] = int(r.Max)
		if r.Min > 0 {
			p["minLength"] = int(r.Min)
		}
	case "array":
		p["maxItems"] = int(r.Max)
	}
}

// Document is the OpenAPI 3.1 description of every endpoint.
func Document(version string) object {
	paths := object{}
	for _, route := range Routes() {
		methods, ok := paths[route.Path].(object)
		if !ok {
			methods = object{}
			paths[route.Path] = methods
		}
		methods[strings.ToLower(route.Method)] = operation(route)
	}
	return object{
		"openapi": "3.1.0",
		"info": object{"title": "Parley", "version": version, "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "Voice assistants that place and answer telephone calls."},
		"servers":  []any{object{"url": "/api"}},
		"security": []any{object{"token": []any{}}},
		"paths":    paths,
		"components": object{"schemas": schemas(), "securitySchemes": object{
			"token": object{"type": "http", "scheme": "bearer", "description": "A token: <number>|<secret>."}}},
	}
}

func operation(route Route) object {
	op := object{
		"operationId": operationID(route), "summary": route.Summary, "tags": []string{route.Group},
		"responses": responses(route),
	}
	if route.Detail != "" {
		op["description"] = route.Detail
	}
	if parameters := parameters(route); len(parameters) > 0 {
		op["parameters"] = parameters
	}
	if route.Body != nil {
		op["requestBody"] = object{"required": !route.Updates, "content": object{"application/json": object{
			"schema": inputSchema(route.Body, route.Updates), "example": bodyExample(route)}}}
	}
	if route.upload {
		file := object{"type": "string", "description": "The table, its first line naming the columns.", "examples": []any{"phone_number,name\n+12025550100,Ada\n"}}
		op["requestBody"] = object{"required": true, "content": object{"text/csv": object{"schema": file},
			"multipart/form-data": object{"schema": object{"type": "object", "properties": object{"file": object{"type": "string"}}}}}}
	}
	return op
}

func operationID(route Route) string {
	path := strings.NewReplacer("/user/", "", "{", "", "}", "", "/", "_", "-", "_").Replace(route.Path)
	return strings.ToLower(route.Method) + "_" + path
}

func parameters(route Route) (list []any) {
	if strings.Contains(route.Path, "{id}") {
		list = append(list, object{"name": "id", "in": "path", "required": true, "schema": object{"type": "integer"}})
	}
	for _, f := range route.Query {
		p := inputProperty(f, false)
		delete(p, "description")
		list = append(list, object{"name": f.Name, "in": "query", "description": f.Effect, "schema": p})
	}
	return list
}

func responses(route Route) object {
	success := content(route.Answer.Schema, nil)
	if route.Answer.Stream {
		success = object{"text/event-stream": object{"schema": object{"type": "string"}}}
	}
	all := object{strconv.Itoa(route.Answer.Status): object{"description": "Success.", "headers": rateHeaders(), "content": success}}
	failures := append(slices.Clone(route.Errors), Failure{http.StatusUnauthorized, "The token is missing, unknown or revoked.", "Unauthenticated.", nil})
	if route.Body != nil {
		failures = append(failures, Failure{http.StatusBadRequest, "The body is not a JSON object.", "The request body is not valid JSON.", nil},
			Failure{http.StatusRequestEntityTooLarge, "The body is too large.", "The request body is larger than 1 MiB.", nil})
	}
	if !slices.ContainsFunc(failures, func(f Failure) bool { return f.Status == http.StatusInternalServerError }) {
		failures = append(failures, Failure{http.StatusInternalServerError, "Storage failed; nothing was changed.", "Server error", nil})
	}
	byStatus := map[int][]Failure{}
	for _, f := range failures {
		byStatus[f.Status] = append(byStatus[f.Status], f)
	}
	for status, fs := range byStatus {
		all[strconv.Itoa(status)] = failureResponse(fs, route.flagged && (status == http.StatusNotFound || status == http.StatusUnprocessableEntity))
	}
	all["429"] = object{"description": "Too many requests.", "content": content(ref("TooManyAttempts"), object{"message": "Too Many Attempts.", "retry_after": 1})}
	return all
}

func failureResponse(fs []Failure, flagged bool) object {
	whens, shown, kinds := []string{}, object{}, []string{}
	for i, f := range fs {
		whens = append(whens, f.When)
		kind, value := "Message", object{"message": f.Message}
		if f.Errors != nil {
			kind, value["errors"] = "Invalid", f.Errors
		}
		if flagged {
			kind, value["success"] = "Flagged"+kind, false
		}
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
		shown["case"+strconv.Itoa(i+1)] = object{"summary": f.When, "value": value}
	}
	schema := ref(kinds[0])
	if len(kinds) > 1 {
		schema = object{"oneOf": []any{ref(kinds[0]), ref(kinds[1])}}
	}
	return object{"description": strings.Join(whens, " "), "content": object{"application/json": object{"schema": schema, "examples": shown}}}
}

func content(schema object, shown any) object {
	media := object{"schema": schema}
	if shown != nil {
		media["example"] = shown
	}
	return object{"application/json": media}
}

func rateHeaders() object {
	integer := object{"type": "integer"}
	return object{
		"X-Request-Id":          object{"schema": object{"type": "string"}, "description": "Names this answer in the server's log."},
		"X-RateLimit-Limit":     object{"schema": integer, "description": "Requests a second."},
		"X-RateLimit-Remaining": object{"schema": integer},
		"X-RateLimit-Reset":     object{"schema": integer, "description": "When the count starts again, in seconds since 1970."},
	}
}

// bodyExample is a request that would be accepted: what is required, and one update.
func bodyExample(route Route) object {
	shown := object{}
	for _, f := range route.Body {
		if f.Rule.ReadOnly || f.Example == nil || !f.Rule.Required && !route.Updates {
			continue
		}
		if route.Updates && len(shown) == 2 {
			break
		}
		name := f.Name
		if f.Request != "" {
			name = f.Request
		}
		shown[name] = f.Example
	}
	return shown
}
