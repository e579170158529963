package parley_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"parley"
)

func TestFictionalNumbers(t *testing.T) {
	t.Parallel()
	for number, fictional := range map[string]bool{
		"+12025550100": true, "+12025550199": true, "+12025550200": false, "+12025550099": false, "+1202555010": false, "+120255501000": false, "12025550100": false, "": false,
	} {
		require.Equal(t, fictional, parley.Fictional(number), number)
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	trunk := parley.ID(7)
	const ordinary, fiction = "+493012345678", "+12025550100"
	for _, c := range []struct {
		carriers parley.Carriers
		number   string
		trunk    *parley.ID
		others   bool
		carrier  parley.Carrier // "" is a refusal
	}{
		{parley.Carriers{Simulated: true}, ordinary, nil, false, parley.CarrierSimulated},
		{parley.Carriers{Simulated: true}, ordinary, &trunk, true, parley.CarrierTrunk},
		{parley.Carriers{Simulated: true}, fiction, &trunk, true, parley.CarrierSimulated},
		{parley.Carriers{Simulated: true}, ordinary, nil, true, ""}, // nobody is to believe that it rang
		{parley.Carriers{Simulated: true}, fiction, nil, true, parley.CarrierSimulated},
		{parley.Carriers{Simulated: true, Default: true}, ordinary, nil, true, parley.CarrierDefault},
		{parley.Carriers{Simulated: true, Default: true}, ordinary, &trunk, true, parley.CarrierTrunk},
		{parley.Carriers{Simulated: true, Default: true}, fiction, nil, false, parley.CarrierSimulated},
		{parley.Carriers{Default: true}, fiction, nil, false, parley.CarrierDefault},
		{parley.Carriers{}, fiction, &trunk, true, parley.CarrierTrunk},
		{parley.Carriers{}, ordinary, nil, false, ""},
		{parley.Carriers{}, ordinary, nil, true, ""},
	} {
		carrier, id, err := c.carriers.Route(c.number, c.trunk, c.others)
		require.Equal(t, c.carrier, carrier, "%+v", c)
		require.Equal(t, carrier == parley.CarrierTrunk, id != nil, "%+v", c)
		require.Equal(t, carrier == "", err != nil, "%+v", c)
		if err != nil {
			require.Equal(t, parley.Invalid, parley.ErrorCode(err))
		}
	}
}
