package parley

import (
	"math"
	"strconv"
	"strings"
)

// Decimal is a number with two places that the interface shows as a string: "0.70".
type Decimal float64

// NewDecimal rounds to the two places that are shown, so that what is shown is
// what is used.
func NewDecimal(f float64) Decimal { return Decimal(math.Round(f*100) / 100) }

// String writes the two places.
func (d Decimal) String() string { return strconv.FormatFloat(float64(d), 'f', 2, 64) }

// MarshalJSON writes the number as a string with two places.
func (d Decimal) MarshalJSON() ([]byte, error) { return []byte(`"` + d.String() + `"`), nil }

// UnmarshalJSON reads a number or a string that holds one.
func (d *Decimal) UnmarshalJSON(raw []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	if err != nil {
		return err
	}
	*d = NewDecimal(f)
	return nil
}
