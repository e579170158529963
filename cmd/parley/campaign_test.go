package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// assistant makes an assistant that calls and returns its id.
func (n *node) assistant(settings string) int {
	n.t.Helper()
	return n.created("/api/user/assistant", `{"assistant_name":"Front desk","calls_direction":"make","engine_type":"pipeline","voice_id":1,"language":"English","llm_model":"sandbox",
		"timezone":"UTC","initial_message":"Hello, this is Acme. Do you have a minute?","system_prompt":"Be brief."`+settings+`}`)
}

// created makes something and returns its id.
func (n *node) created(path, body string) int {
	n.t.Helper()
	var answer struct {
		Data struct {
			ID int `json:"id"`
		} `json:"data"`
	}
	require.NoError(n.t, json.Unmarshal([]byte(n.want(201, "POST", path, body)), &answer))
	return answer.Data.ID
}

// campaign makes a campaign, imports its leads and returns its id.
func (n *node) campaign(assistant int, settings string, numbers ...string) int {
	n.t.Helper()
	id := n.created("/api/user/campaigns", fmt.Sprintf(`{"name":"Spring","assistant_id":%d,"timezone":"UTC"%s}`, assistant, settings))
	file := strings.NewReader("phone_number\n" + strings.Join(numbers, "\n") + "\n")
	request, err := http.NewRequest("POST", fmt.Sprintf("%s/api/user/campaigns/%d/leads/import", n.url, id), file)
	require.NoError(n.t, err)
	request.Header.Set("Authorization", "Bearer "+n.token)
	request.Header.Set("Content-Type", "text/csv")
	response, err := http.DefaultClient.Do(request)
	require.NoError(n.t, err)
	require.NoError(n.t, response.Body.Close())
	require.Equal(n.t, 200, response.StatusCode)
	return id
}

func (n *node) switches(campaign int, action string) {
	n.t.Helper()
	n.want(200, "POST", "/api/user/campaigns/update-status", fmt.Sprintf(`{"campaign_id":%d,"action":%q}`, campaign, action))
}

// statuses are those of a campaign's leads, by number.
func (n *node) statuses(campaign int) map[string]string {
	n.t.Helper()
	var leads []struct {
		Number string `json:"phone_number"`
		Status string `json:"status"`
	}
	require.NoError(n.t, json.Unmarshal([]byte(n.want(200, "GET", fmt.Sprintf("/api/user/leads?campaign_id=%d&per_page=1000", campaign), "")), &leads))
	all := map[string]string{}
	for _, l := range leads {
		all[l.Number] = l.Status
	}
	return all
}

// standing is a campaign's status.
func (n *node) standing(campaign int) string {
	n.t.Helper()
	var c struct {
		Status string `json:"status"`
	}
	require.NoError(n.t, json.Unmarshal([]byte(n.want(200, "GET", fmt.Sprintf("/api/user/campaigns/%d", campaign), "")), &c))
	return c.Status
}

// completes waits for the end of a campaign.
func (n *node) completes(campaign int, within time.Duration) {
	n.t.Helper()
	if !comesTrue(within, func() bool { return n.standing(campaign) == "completed" }) {
		n.t.Fatalf("the campaign is %s with %v\n%s", n.standing(campaign), n.statuses(campaign), n.log)
	}
}

// comesTrue asks until something is so, or for too long: another process can only be asked.
func comesTrue(limit time.Duration, is func() bool) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return is()
}

// database opens the database of an environment, beside the server.
func database(t *testing.T, env []string) *sql.DB {
	t.Helper()
	driver, source := "sqlite", ""
	for _, setting := range env {
		name, value, _ := strings.Cut(setting, "=")
		switch name {
		case "PARLEY_DATA":
			if driver == "sqlite" {
				source = "file:" + value + "/parley.db?_pragma=busy_timeout(10000)"
			}
		case "PARLEY_DB":
			driver, source = "pgx", value
		}
	}
	db, err := sql.Open(driver, source)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// A campaign over the simulated callees: everybody ends as they should, retries are made,
// and who asks never to be called again is not, by any campaign.
func TestSandboxCampaign(t *testing.T) {
	eachDatabase(t, func(t *testing.T, env []string) {
		n := serves(t, env)
		db := database(t, env)
		assistant := n.assistant(`,"max_silence_duration":6`)
		number := func(callee string) string { return "+120255501" + callee }
		patient := n.campaign(assistant, `,"max_retries":0`, number("02"))
		main := n.campaign(assistant, `,"max_retries":1,"retry_interval":3600,"max_calls_in_parallel":4`,
			number("00"), number("01"), number("03"), number("04"), number("05"), number("06"), number("07"), number("08"))
		later := n.campaign(assistant, "", number("08"))
		n.switches(patient, "start")
		n.switches(main, "start")

		first := map[string]string{number("00"): "completed", number("01"): "rescheduled", number("03"): "rescheduled", number("04"): "rescheduled",
			number("05"): "completed", number("06"): "completed", number("07"): "completed", number("08"): "blacklisted"}
		misheard := map[string]int{}
		if !comesTrue(4*time.Minute, func() bool {
			now := n.statuses(main)
			for _, callee := range []string{"04", "08"} {
				// On a machine that is too busy words get lost: whoever was taken for somebody else is called again.
				if now[number(callee)] == "completed" && misheard[number(callee)] < 3 {
					misheard[number(callee)]++
					n.putBack(main, number(callee))
				}
			}
			return equal(first, now)
		}) {
			require.Equal(t, first, n.statuses(main), n.log)
		}
		require.Equal(t, map[string]string{number("08"): "blacklisted"}, n.statuses(later), "in every campaign")
		require.Contains(t, n.want(200, "GET", "/api/user/do-not-call", ""), number("08"))
		n.want(403, "POST", "/api/user/make_call", fmt.Sprintf(`{"assistant_id":%d,"phone_number":%q}`, assistant, number("08")))

		// The hour of the retries comes.
		_, err := db.Exec("UPDATE leads SET due_at = due_at - 3700000000, wait_until = wait_until - 3700000000 WHERE status = 'rescheduled'")
		require.NoError(t, err)
		n.completes(main, 4*time.Minute)
		for _, callee := range []string{"01", "03", "04"} {
			first[number(callee)] = "reached-max-retries"
		}
		if got := n.statuses(main); got[number("04")] != "completed" { // its second greeting was misheard
			require.Equal(t, first, got)
		}
		n.completes(patient, 4*time.Minute)
		require.Equal(t, map[string]string{number("02"): "reached-max-retries"}, n.statuses(patient))
		dialled := map[string]int{}
		rows, err := db.Query("SELECT client_phone_number, COUNT(*) FROM calls WHERE dialed_at IS NOT NULL GROUP BY client_phone_number")
		require.NoError(t, err)
		defer rows.Close()
		for rows.Next() {
			var number string
			var count int
			require.NoError(t, rows.Scan(&number, &count))
			dialled[number] = count
		}
		require.NoError(t, rows.Err())
		for number, times := range misheard {
			dialled[number] -= times
		}
		require.Equal(t, map[string]int{number("00"): 1, number("01"): 2, number("02"): 1, number("03"): 2, number("04"): 2, number("05"): 1, number("06"): 1, number("07"): 1, number("08"): 1}, dialled)

		require.NotContains(t, n.log.String(), "2025550108")
		n.stops()
		require.Contains(t, succeeds(t, env, "erase", number("08"), "--user", "admin@localhost", "--vacuum"), fmt.Sprintf("Erased the number with %d calls.", 1+misheard[number("08")]))
		var left int
		require.NoError(t, db.QueryRow("SELECT COUNT(*) FROM calls WHERE client_phone_number LIKE '%08'").Scan(&left))
		require.Zero(t, left)
		out, code := runs(t, env, "erase", "12", "--user", "admin@localhost")
		require.Equal(t, 1, code)
		require.Contains(t, out, `"12" is no phone number in E.164 form`)
	})
}

// putBack puts a lead in the queue again.
func (n *node) putBack(campaign int, number string) {
	n.t.Helper()
	var leads []struct {
		ID int `json:"id"`
	}
	require.NoError(n.t, json.Unmarshal([]byte(n.want(200, "GET", fmt.Sprintf("/api/user/leads?campaign_id=%d&phone_number=%s", campaign, number[1:]), "")), &leads))
	require.Len(n.t, leads, 1)
	n.want(200, "PUT", fmt.Sprintf("/api/user/leads/%d", leads[0].ID), `{"status":"created"}`)
}

func equal(a, b map[string]string) bool {
	for key, value := range a {
		if b[key] != value {
			return false
		}
	}
	return len(a) == len(b)
}
