package parley_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"parley"
)

// dialable says what stands before a call: the form of a number, then the policy.
func dialable(p parley.NumberPolicy, number string) bool {
	return parley.E164(number) == "" && p.Check(number) == nil
}

// Two hundred numbers and more that must never be dialled by default: premium rate, satellite,
// short and emergency numbers, in the forms they are tried in.
func TestPromiseS5TollFraudNumbersAreRefused(t *testing.T) {
	t.Parallel()
	numbers := []string{"112", "911", "999", "110", "+112", "+911", "+1911", "+49110", "+44999", "+61000", "+33112", "900", "0900123456", "00881631234567", "+", "+1", "+0900123456", "tel:+19005551234", "+1 900 555 1234", "+1900-555-1234", "+1900555123x", "+19005551234;ext=1", "+19005551234\n"}
	for _, prefix := range parley.DefaultBlocked {
		for _, rest := range []string{"1234567", "00000000"} {
			numbers = append(numbers, prefix+rest)
		}
		numbers = append(numbers, fmt.Sprint(prefix, "987654"))
	}
	require.GreaterOrEqual(t, len(numbers), 200)
	for _, number := range numbers {
		require.False(t, dialable(parley.NumberPolicy{}, number), number)
	}
}

func TestPolicyLetsOrdinaryNumbersThrough(t *testing.T) {
	t.Parallel()
	for _, number := range []string{"+12025550100", "+12125550123", "+442079460123", "+447700900123", "+493012345678", "+4915112345678", "+33123456789", "+34912345678", "+390612345678",
		"+31201234567", "+41443211234", "+4312345678", "+48221234567", "+61212345678", "+81312345678", "+5511912345678", "+919812345678", "+8613812345678", "+27112345678"} {
		require.True(t, dialable(parley.NumberPolicy{}, number), number)
	}
}

func TestPolicyOfAnOperator(t *testing.T) {
	t.Parallel()
	german := parley.NumberPolicy{Allowed: []string{"+49"}}
	require.NoError(t, german.Check("+493012345678"))
	require.ErrorContains(t, german.Check("+12025550100"), "not allowed")
	require.ErrorContains(t, german.Check("+499001234567"), "Calls to +49900 numbers are blocked")
	require.Equal(t, parley.Forbidden, parley.ErrorCode(german.Check("+12025550100")))

	own := parley.NumberPolicy{Blocked: []string{"+1"}}
	require.Error(t, own.Check("+12025550100"))
	require.NoError(t, own.Check("+8811234567"), "an operator's own list replaces the default one")

	finer := parley.NumberPolicy{Allowed: []string{"+1", "+19005551"}}
	require.NoError(t, finer.Check("+19005551234"), "what is allowed more exactly than it is blocked goes through")
	require.Error(t, finer.Check("+19005559999"))
}

// Each limit admits what stays below it and refuses the next; 0 is no limit.
func TestPromiseS5CapsAdmitUpToTheirLimit(t *testing.T) {
	t.Parallel()
	caps := parley.CallCaps{Parallel: 3, PerSecond: 2, MinutesPerDay: 10, SpendPerDay: parley.NewMoney(5)}
	require.NoError(t, caps.Admit(parley.Load{}))
	require.NoError(t, caps.Admit(parley.Load{Live: 2, Begun: 1, Seconds: 599, Spent: 4_999_999}))
	for _, c := range []struct {
		load  parley.Load
		code  parley.Code
		retry int
	}{
		{parley.Load{Live: 3}, parley.TooMany, 5},
		{parley.Load{Live: 4}, parley.TooMany, 5},
		{parley.Load{Begun: 2}, parley.TooMany, 1},
		{parley.Load{Seconds: 600}, parley.Payment, 0},
		{parley.Load{Spent: 5_000_000}, parley.Payment, 0},
		{parley.Load{Live: 3, Spent: 5_000_000}, parley.Payment, 0}, // what trying again does not help comes first
	} {
		err := caps.Admit(c.load)
		var refusal *parley.Error
		require.ErrorAs(t, err, &refusal, "%+v", c)
		require.Equal(t, c.code, refusal.Code, "%+v", c)
		require.Equal(t, c.retry, refusal.RetryAfter, "%+v", c)
		require.NotEmpty(t, refusal.Message)
		require.NoError(t, parley.CallCaps{}.Admit(c.load), "no limit")
	}
}
