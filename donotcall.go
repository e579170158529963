package parley

import (
	"slices"
	"strconv"
	"time"
)

// DoNotCall is a number that a user's campaigns and calls leave in peace.
type DoNotCall struct {
	ID          ID
	UserID      ID
	PhoneNumber *string // nil: erased; it is still recognised, and still not called
	Reason      string
	CreatedAt   time.Time
}

// DoNotCallForm is the table of an entry.
var DoNotCallForm = Form[DoNotCall]{
	{Name: "id", At: func(d *DoNotCall) any { return &d.ID }, Rule: readOnly},
	{Name: "phone_number", At: func(d *DoNotCall) any { return &d.PhoneNumber }, Rule: readOnly, Effect: "null when the number was erased: it is still not called."},
	{Name: "reason", At: func(d *DoNotCall) any { return &d.Reason }, Rule: readOnly, Effect: "Why it is listed."},
	{Name: "created_at", At: func(d *DoNotCall) any { return &d.CreatedAt }, Rule: readOnly},
}

// DoNotCallChange is a request to list numbers or to take them off.
type DoNotCallChange struct {
	Number  *string
	Numbers []string
	Reason  string
}

// RemoveDoNotCallForm is the table of a request to take numbers off the list.
var RemoveDoNotCallForm = Form[DoNotCallChange]{
	{Name: "phone_number", At: func(c *DoNotCallChange) any { return &c.Number }, Rule: Rule{Required: true, Instead: "phone_numbers", Check: E164}, Effect: "The number in E.164 form.", Example: "+12025550108"},
	{Name: "phone_numbers", At: func(c *DoNotCallChange) any { return &c.Numbers }, Rule: Rule{Max: 1000}, Effect: "Several at once.", Example: []string{"+12025550108"}},
}

// AddDoNotCallForm is the table of a request to list numbers.
var AddDoNotCallForm = append(slices.Clip(RemoveDoNotCallForm),
	Field[DoNotCallChange]{Name: "reason", At: func(c *DoNotCallChange) any { return &c.Reason }, Rule: Rule{Max: 255}, Default: "api", Effect: "Why, for your own records."})

// ReadDoNotCall reads the numbers of such a request, each once, and the reason.
func ReadDoNotCall(form Form[DoNotCallChange], in Input) (numbers []string, reason string, err error) {
	var c DoNotCallChange
	_, errs := form.Create(in, &c)
	for i, number := range c.Numbers {
		if wrong := E164(number); wrong != "" {
			path := "phone_numbers." + strconv.Itoa(i)
			errs.Add(path, "The "+Spaced(path)+" "+wrong)
		}
	}
	numbers = c.Numbers
	if c.Number != nil {
		numbers = append(numbers, *c.Number)
	}
	if len(numbers) == 0 && len(errs) == 0 {
		errs.Add("phone_number", Required("phone_number"))
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), c.Reason, invalid(errs, ValidationFailed)
}
