package api

import (
	"context"
	"net/http"

	"parley"
	"parley/internal/store"
)

func toolRoutes() []Route {
	const group = "Mid call tools"
	body := parley.ToolForm.Describe()
	missing := Failure{http.StatusNotFound, "The tool is unknown or another user's.", "Tool not found", nil}
	return []Route{
		{Method: "POST", Path: "/user/tools", Group: group, Summary: "Create a tool", handle: createTool,
			Detail: "A tool is an HTTP endpoint of yours that an assistant may call during a conversation. It extracts the parameters of `schema` from the conversation and sends them: in the query for GET and DELETE, in a JSON body for the others.",
			Body:   body, Answer: changed(http.StatusCreated, "Tool created successfully", ref("Tool")),
			Errors: []Failure{
				{http.StatusUnprocessableEntity, "A field breaks its rule.", "The name field must contain only lowercase letters and underscores, and start with a letter.",
					example{"name": {"Tool name must contain only lowercase letters and underscores, and start with a letter."}}},
				{http.StatusUnprocessableEntity, "The plan's number of tools is reached.", parley.ErrToolLimit(5).Message, nil},
			}},
		{Method: "GET", Path: "/user/tools", Group: group, Summary: "List tools", handle: listTools,
			Detail: "All of your tools, newest first.", Answer: bare(arrayOf("Tool"))},
		{Method: "GET", Path: "/user/tools/{id}", Group: group, Summary: "Get a tool", handle: getTool,
			Answer: bare(ref("Tool")), Errors: []Failure{missing}},
		{Method: "PUT", Path: "/user/tools/{id}", Group: group, Summary: "Update a tool", handle: updateTool,
			Detail: "Only supplied fields change. `headers` and `schema` replace the lists there were.", Updates: true,
			Body: body, Answer: changed(http.StatusOK, "Tool updated successfully", ref("Tool")),
			Errors: []Failure{missing, {http.StatusUnprocessableEntity, "A field breaks its rule.", parley.ValidationFailed,
				example{"timeout": {"The timeout must be between 1 and 30."}}}}},
		{Method: "DELETE", Path: "/user/tools/{id}", Group: group, Summary: "Delete a tool", handle: deleteTool,
			Detail: "It is detached from every assistant.", Answer: changed(http.StatusOK, "Tool deleted successfully", nil), Errors: []Failure{missing}},
		{Method: "POST", Path: "/user/tools/{id}/test", Group: group, Summary: "Run a tool once", handle: testTool,
			Detail: "Calls the endpoint as a call would, with these parameters or with samples, and answers with what happened. A tool that fails is a success here: `error` says why.",
			Body:   parley.ToolTrialForm.Describe(), Updates: true, Answer: bare(ref("Exchange")),
			Errors: []Failure{missing, {http.StatusUnprocessableEntity, "A parameter is not of the type that the schema declares.", parley.ValidationFailed,
				example{"parameters.count": {"The parameters.count must be a number."}}}}},
	}
}

func createTool(ctx context.Context, rq *request) (*reply, error) {
	tool, err := parley.CreateTool(rq.input)
	if err != nil {
		return nil, err
	}
	if err := rq.tenant.CreateTool(ctx, tool, rq.user.Limits().Tools); err != nil {
		return nil, err
	}
	data, err := record(parley.ToolForm, tool)
	return done(http.StatusCreated, "Tool created successfully", data), err
}

func listTools(ctx context.Context, rq *request) (*reply, error) {
	tools, err := rq.tenant.Tools(ctx)
	return ok(records(parley.ToolForm, tools, err))
}

func getTool(ctx context.Context, rq *request) (*reply, error) {
	tool, err := rq.tenant.Tool(ctx, rq.id())
	if err != nil {
		return nil, err
	}
	return ok(record(parley.ToolForm, tool))
}

func updateTool(ctx context.Context, rq *request) (*reply, error) {
	var data []byte
	err := rq.tenant.Tx(ctx, func(t *store.Tenant) error {
		tool, err := t.Tool(ctx, rq.id())
		if err != nil {
			return err
		}
		if err := tool.Update(rq.input); err != nil {
			return err
		}
		switch taken, err := t.ToolNameTaken(ctx, tool); {
		case err != nil:
			return err
		case taken:
			return parley.ErrToolName(tool.Name)
		}
		if err := t.SaveTool(ctx, tool); err != nil {
			return err
		}
		data, err = record(parley.ToolForm, tool)
		return err
	})
	return done(http.StatusOK, "Tool updated successfully", data), err
}

func deleteTool(ctx context.Context, rq *request) (*reply, error) {
	return done(http.StatusOK, "Tool deleted successfully", nil), rq.tenant.DeleteTool(ctx, rq.id())
}

func testTool(ctx context.Context, rq *request) (*reply, error) {
	tool, err := rq.tenant.Tool(ctx, rq.id())
	if err != nil {
		return nil, err
	}
	trial, err := tool.Trial(rq.input)
	if err != nil {
		return nil, err
	}
	// The tool's own limit bounds it. The request's context may end sooner: the server
	// takes a client for gone that has sent nothing for as long as a tool may take.
	exchange := rq.server.config.TryTool(context.WithoutCancel(ctx), *tool, trial)
	return ok(record(parley.ExchangeForm, &exchange))
}
