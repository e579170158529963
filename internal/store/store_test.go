package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"parley"
	"parley/internal/store"
	"parley/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestToolsRoundTrip(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		tool := &parley.Tool{Name: "look_up", Description: "d", Endpoint: "https://x.example", Method: "GET", Timeout: 7,
			Headers: []parley.Header{{Name: "X-Key", Value: "geheim ✓"}}, Schema: []parley.Param{{Name: "order", Type: "string", Description: "the order"}}}
		require.NoError(t, tenant.CreateTool(ctx, tool, 0))

		got, err := tenant.Tool(ctx, tool.ID)
		require.NoError(t, err)
		require.Equal(t, tool, got)

		got.Headers, got.Name = []parley.Header{}, "other"
		require.NoError(t, tenant.SaveTool(ctx, got))
		all, err := tenant.Tools(ctx)
		require.NoError(t, err)
		require.Equal(t, []parley.Tool{*got}, all)
		require.True(t, got.UpdatedAt.After(got.CreatedAt))

		require.NoError(t, tenant.DeleteTool(ctx, tool.ID))
		_, err = tenant.Tool(ctx, tool.ID)
		require.Equal(t, parley.NotFound, parley.ErrorCode(err))
		require.Equal(t, parley.NotFound, parley.ErrorCode(tenant.DeleteTool(ctx, tool.ID)))
	})
}

func TestAssistantsRoundTrip(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		first, second := makeTool(t, tenant, "first"), makeTool(t, tenant, "second")
		a := storetest.Assistant("Front desk")
		a.Variables = map[string]any{"big": json.Number("123456789012345678901234567890"), "nested": map[string]any{"list": []any{"x", true, nil}}}
		url := "https://x.example/hook"
		a.EnableWebhook(url)
		a.ToolIDs = []parley.ID{second, first}
		require.NoError(t, tenant.CreateAssistant(ctx, a))

		got, err := tenant.Assistant(ctx, a.ID)
		require.NoError(t, err)
		require.Equal(t, []parley.ID{second, first}, got.ToolIDs, "tools keep the order they were attached in")
		require.Equal(t, "second", got.Tools[0].Name)
		got.Tools = nil
		require.Equal(t, a, got)

		got.Name = "Back office"
		require.NoError(t, tenant.SaveAssistant(ctx, got, false))
		again, err := tenant.Assistant(ctx, a.ID)
		require.NoError(t, err)
		require.Equal(t, []parley.ID{second, first}, again.ToolIDs, "tools that were not changed stay")
		again.ToolIDs = []parley.ID{first}
		require.NoError(t, tenant.SaveAssistant(ctx, again, true))
		again, err = tenant.Assistant(ctx, a.ID)
		require.NoError(t, err)
		require.Equal(t, []parley.ID{first}, again.ToolIDs)

		require.NoError(t, tenant.DeleteTool(ctx, first))
		again, err = tenant.Assistant(ctx, a.ID)
		require.NoError(t, err)
		require.Empty(t, again.Tools, "a deleted tool is detached")
	})
}

func makeTool(t *testing.T, tenant *store.Tenant, name string) parley.ID {
	t.Helper()
	tool := &parley.Tool{Name: name, Description: "d", Endpoint: "https://x.example", Method: "GET", Timeout: 10, Headers: []parley.Header{}, Schema: []parley.Param{}}
	require.NoError(t, tenant.CreateTool(t.Context(), tool, 0))
	return tool.ID
}

func TestDeletedAssistantDisappears(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		number := &parley.PhoneNumber{Number: "+12025550180", CountryCode: "US", Type: parley.NormalNumber}
		require.NoError(t, tenant.CreatePhoneNumber(ctx, number))
		a := storetest.Assistant("Front desk")
		a.Type, a.PhoneNumberID, a.ToolIDs = parley.Inbound, &number.ID, []parley.ID{makeTool(t, tenant, "tool")}
		require.NoError(t, tenant.CreateAssistant(ctx, a))
		taken, err := tenant.PhoneNumber(ctx, number.ID)
		require.NoError(t, err)
		require.False(t, taken.Available)

		require.NoError(t, tenant.DeleteAssistant(ctx, a.ID))

		_, err = tenant.Assistant(ctx, a.ID)
		require.Equal(t, parley.NotFound, parley.ErrorCode(err))
		require.Equal(t, parley.NotFound, parley.ErrorCode(tenant.DeleteAssistant(ctx, a.ID)))
		require.Equal(t, parley.NotFound, parley.ErrorCode(tenant.SaveAssistant(ctx, a, true)))
		page, total, err := tenant.Assistants(ctx, store.AssistantFilter{}, 10, 0)
		require.NoError(t, err)
		require.Empty(t, page)
		require.Zero(t, total)
		free, err := tenant.PhoneNumber(ctx, number.ID)
		require.NoError(t, err)
		require.True(t, free.Available, "its line is free again")
		require.NoError(t, tenant.DeletePhoneNumber(ctx, number.ID))
	})
}

// The kept counts must say what counting would, whatever has happened to the rows.
func TestAssistantCountsFollowEveryChange(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, _ := storetest.User(t, db, "a@example.com")
		other, _ := storetest.User(t, db, "b@example.com")
		tenant := db.Tenant(user.ID)
		require.NoError(t, db.Tenant(other.ID).CreateAssistant(ctx, storetest.Assistant("theirs")))
		var all []*parley.Assistant
		for i := range 12 {
			a := storetest.Assistant(fmt.Sprint("assistant ", i))
			if i%3 == 0 {
				a.Type = parley.Inbound
			}
			require.NoError(t, tenant.CreateAssistant(ctx, a))
			all = append(all, a)
		}
		all[0].Type, all[1].Status = parley.Outbound, parley.Inactive
		require.NoError(t, tenant.SaveAssistant(ctx, all[0], false))
		require.NoError(t, tenant.SaveAssistant(ctx, all[1], false))
		all[1].Name = "renamed"
		require.NoError(t, tenant.SaveAssistant(ctx, all[1], false))
		require.NoError(t, tenant.DeleteAssistant(ctx, all[2].ID))
		require.NoError(t, tenant.DeleteAssistant(ctx, all[3].ID))

		for _, f := range []store.AssistantFilter{{}, {Type: parley.Inbound}, {Type: parley.Outbound}, {Status: parley.Inactive}, {Type: parley.Outbound, Status: parley.Active}} {
			page, total, err := tenant.Assistants(ctx, f, 100, 0)
			require.NoError(t, err)
			require.Len(t, page, total, "%+v", f)
			require.NotZero(t, total)
		}
	})
}

func TestAssistantsAreNewestFirstPageByPage(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		for i := range 7 {
			require.NoError(t, tenant.CreateAssistant(ctx, storetest.Assistant(fmt.Sprint(i))))
		}
		var names []string
		for offset := 0; offset < 9; offset += 3 {
			page, total, err := tenant.Assistants(ctx, store.AssistantFilter{}, 3, offset)
			require.NoError(t, err)
			require.Equal(t, 7, total)
			for _, a := range page {
				names = append(names, a.Name)
			}
		}
		require.Equal(t, []string{"6", "5", "4", "3", "2", "1", "0"}, names)
	})
}

func TestOneInboundAssistantPerLine(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		number := &parley.PhoneNumber{Number: "+12025550180", CountryCode: "US", Type: parley.NormalNumber}
		require.NoError(t, tenant.CreatePhoneNumber(t.Context(), number))
		won := race(20, func() error {
			a := storetest.Assistant("racer")
			a.Type, a.PhoneNumberID = parley.Inbound, &number.ID
			return tenant.CreateAssistant(context.Background(), a)
		})
		require.Equal(t, 1, won)
		for range 2 {
			a := storetest.Assistant("caller")
			a.PhoneNumberID = &number.ID
			require.NoError(t, tenant.CreateAssistant(t.Context(), a), "any number of assistants may call from it")
		}
	})
}

func TestToolLimitHoldsUnderARace(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		user, _ := storetest.User(t, db, "a@example.com")
		won := race(30, func() error {
			return db.Tenant(user.ID).CreateTool(context.Background(), &parley.Tool{Name: "t", Method: "GET"}, 5)
		})
		require.Equal(t, 5, won)
	})
}

// race runs fn many times at once and counts the successes.
func race(times int, fn func() error) (won int) {
	var mu sync.Mutex
	var wait sync.WaitGroup
	for range times {
		wait.Go(func() {
			if fn() == nil {
				mu.Lock()
				won++
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return won
}

func TestTransactionsLeaveNothingHalfDone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, _ := storetest.User(t, db, "a@example.com")
		tenant := db.Tenant(user.ID)
		err := tenant.Tx(ctx, func(tx *store.Tenant) error {
			makeTool(t, tx, "doomed")
			return context.Canceled
		})
		require.ErrorIs(t, err, context.Canceled)
		a := storetest.Assistant("doomed")
		a.ToolIDs = []parley.ID{999} // no such tool: the last statement fails
		require.Error(t, tenant.CreateAssistant(ctx, a))
		tools, err := tenant.Tools(ctx)
		require.NoError(t, err)
		require.Empty(t, tools)
		_, total, err := tenant.Assistants(ctx, store.AssistantFilter{}, 10, 0)
		require.NoError(t, err)
		require.Zero(t, total)
	})
}

func TestTokens(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		user, text := storetest.User(t, db, "a@example.com")
		require.Regexp(t, `^\d+\|[A-Za-z0-9]{43}$`, text)
		found, err := db.System().Authenticate(ctx, text)
		require.NoError(t, err)
		require.Equal(t, user.ID, found.ID)
		for _, wrong := range []string{"", "1|", text[2:], text + "x", "1|" + text} {
			_, err = db.System().Authenticate(ctx, wrong)
			require.Equal(t, parley.NotFound, parley.ErrorCode(err), wrong)
		}
		tokens, err := db.Tenant(user.ID).Tokens(ctx)
		require.NoError(t, err)
		require.NoError(t, db.Tenant(user.ID).RevokeToken(ctx, tokens[0].ID))
		_, err = db.System().Authenticate(ctx, text)
		require.Equal(t, parley.NotFound, parley.ErrorCode(err))
		require.Equal(t, parley.NotFound, parley.ErrorCode(db.Tenant(user.ID).RevokeToken(ctx, tokens[0].ID)))
	})
}

func TestFirstStart(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		texts := make([]string, 4)
		var wait sync.WaitGroup
		for i := range texts {
			wait.Go(func() { texts[i], _ = db.System().Begin(context.Background(), "") })
		}
		wait.Wait()
		made := ""
		for _, text := range texts {
			if text != "" {
				require.Empty(t, made, "of several servers one makes the first user")
				made = text
			}
		}
		user, err := db.System().Authenticate(ctx, made)
		require.NoError(t, err)
		numbers, err := db.Tenant(user.ID).PhoneNumbers(ctx)
		require.NoError(t, err)
		types := map[string]int{}
		for _, n := range numbers {
			types[n.Type]++
		}
		require.Len(t, types, 3, "a few lines of each type")
		languages, err := db.Tenant(user.ID).Languages(ctx)
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(languages), 40)
		require.NoError(t, db.System().SeedCatalogue(ctx))
		again, err := db.Tenant(user.ID).Languages(ctx)
		require.NoError(t, err)
		require.Equal(t, languages, again, "seeding twice adds nothing")
	})
}

func TestPrivateVoicesAreTheirOwners(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a, _ := storetest.User(t, db, "a@example.com")
		b, _ := storetest.User(t, db, "b@example.com")
		require.NoError(t, db.System().AddVoice(ctx, &parley.Voice{Name: "Cloned", Mode: parley.Pipeline, Provider: "x", Key: "k", UserID: &a.ID}))
		own, err := db.Tenant(a.ID).Voices(ctx, store.VoiceFilter{})
		require.NoError(t, err)
		others, err := db.Tenant(b.ID).Voices(ctx, store.VoiceFilter{})
		require.NoError(t, err)
		require.Len(t, own, len(others)+1)
		_, err = db.Tenant(b.ID).Voice(ctx, own[len(own)-1].ID)
		require.Equal(t, parley.NotFound, parley.ErrorCode(err))
	})
}

func TestOpeningAndClosingLeavesNothingRunning(t *testing.T) {
	ignore := goleak.IgnoreCurrent()
	db, err := store.Open(t.Context(), storetest.SQLite(t))
	require.NoError(t, err)
	user, _ := storetest.User(t, db, "a@example.com")
	_, err = db.Tenant(user.ID).Tools(t.Context())
	require.NoError(t, err)
	require.NoError(t, db.Close())
	goleak.VerifyNone(t, ignore)
}
