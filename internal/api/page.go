package api

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"parley"
)

// page is what follows the data on a page of a list, in the interface's shape.
type page struct {
	FirstPageURL string     `json:"first_page_url"`
	From         *int       `json:"from"`
	LastPage     int        `json:"last_page"`
	LastPageURL  string     `json:"last_page_url"`
	Links        []pageLink `json:"links"`
	NextPageURL  *string    `json:"next_page_url"`
	Path         string     `json:"path"`
	PerPage      int        `json:"per_page"`
	PrevPageURL  *string    `json:"prev_page_url"`
	To           *int       `json:"to"`
	Total        int        `json:"total"`
}

// append writes a page around its items, which are JSON already: encoding them
// once more would cost as much as reading them from the database.
func (p *page) append(number int, items []byte) []byte {
	rest := encode(p)
	b := make([]byte, 0, len(items)+len(rest)+64)
	b = append(b, `{"current_page":`...)
	b = strconv.AppendInt(b, int64(number), 10)
	b = append(b, `,"data":`...)
	b = append(b, items...)
	b = append(b, ',')
	return append(b, rest[1:]...)
}

type pageLink struct {
	URL    *string `json:"url"`
	Label  string  `json:"label"`
	Active bool    `json:"active"`
}

// paging is the part of a list's query that chooses the page.
type paging struct {
	PerPage int
	Page    int
}

func (p paging) offset() int { return (p.Page - 1) * p.PerPage }

// maxPage keeps page numbers far from where an offset would overflow.
const maxPage = 10_000_000

// pagingFields are the query fields of every paginated list.
func pagingFields[T any](at func(*T) *paging, perPage int) parley.Form[T] {
	return parley.Form[T]{
		{Name: "per_page", At: func(q *T) any { return &at(q).PerPage }, Rule: parley.Rule{Min: 1, Max: 100}, Default: perPage, Effect: "Items per page."},
		{Name: "page", At: func(q *T) any { return &at(q).Page }, Rule: parley.Rule{Min: 1, Max: maxPage}, Default: 1, Effect: "Which page."},
	}
}

// maxBare is how many items a list without pages holds.
const maxBare = 1000

// bareFields are the query fields of a list that is a bare array and yet has pages.
func bareFields[T any](at func(*T) *paging) parley.Form[T] {
	fields := pagingFields(at, maxBare)
	fields[0].Max = maxBare
	return fields
}

// counted is a bare array that is a part of a list: a header says how long that is.
func counted[T any](form parley.Form[T], part []T, total int, err error) (*reply, error) {
	items, err := records(form, part, err)
	return &reply{status: http.StatusOK, body: items, header: http.Header{"X-Total-Count": {strconv.Itoa(total)}}}, err
}

// paginate wraps the items of one page. Its addresses keep the other parameters of the query.
func (s *Server) paginate(r *http.Request, p paging, items []byte, count, total int) []byte {
	path := s.baseURL(r) + r.URL.Path
	query := r.URL.Query()
	address := func(n int) *string {
		query.Set("page", strconv.Itoa(n))
		at := path + "?" + query.Encode()
		return &at
	}
	last := max(1, (total+p.PerPage-1)/p.PerPage)
	answer := page{
		LastPage: last, Path: path, PerPage: p.PerPage, Total: total,
		FirstPageURL: *address(1), LastPageURL: *address(last),
	}
	if count > 0 {
		from, to := p.offset()+1, p.offset()+count
		answer.From, answer.To = &from, &to
	}
	if p.Page > 1 {
		answer.PrevPageURL = address(p.Page - 1)
	}
	if p.Page < last {
		answer.NextPageURL = address(p.Page + 1)
	}
	answer.Links = append(answer.Links, pageLink{URL: answer.PrevPageURL, Label: "&laquo; Previous"})
	for _, n := range pageNumbers(p.Page, last) {
		if n == 0 {
			answer.Links = append(answer.Links, pageLink{Label: "..."})
			continue
		}
		answer.Links = append(answer.Links, pageLink{URL: address(n), Label: strconv.Itoa(n), Active: n == p.Page})
	}
	answer.Links = append(answer.Links, pageLink{URL: answer.NextPageURL, Label: "Next &raquo;"})
	return answer.append(p.Page, items)
}

const (
	allPages = 13 // up to here every page gets a link
	edge     = 10 // links at the end that the current page is near to
	around   = 3  // links on each side of a page in the middle
)

// pageNumbers are the pages to link to; 0 stands for a gap.
func pageNumbers(current, last int) []int {
	switch {
	case last <= allPages:
		return span(nil, 1, last)
	case current <= edge-around:
		return span(append(span(nil, 1, edge), 0), last-1, last)
	case current > last-(edge-around):
		return span([]int{1, 2, 0}, last-edge+1, last)
	default:
		middle := span([]int{1, 2, 0}, current-around, current+around)
		return span(append(middle, 0), last-1, last)
	}
}

func span(numbers []int, from, to int) []int {
	for n := from; n <= to; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

// readQuery reads a query string by its table.
func readQuery[T any](form parley.Form[T], values url.Values) (T, error) {
	var q T
	if errs := form.Query(values, &q); len(errs) > 0 {
		return q, &parley.Error{Code: parley.Invalid, Message: parley.ValidationFailed, Fields: errs}
	}
	return q, nil
}

// days is the part of a list's query that chooses a range of days of creation, both
// included.
type days struct{ From, To string }

// date checks a day.
func date(s string) string {
	if _, err := time.Parse(time.DateOnly, s); err != nil {
		return "must be a date such as 2026-01-31."
	}
	return ""
}

// span is the range of days as instants, the end not included; what is not set is zero.
func (d days) span() (from, to time.Time, err error) {
	if d.From != "" {
		from, _ = time.Parse(time.DateOnly, d.From) // checked by the table
	}
	if d.To != "" {
		to, _ = time.Parse(time.DateOnly, d.To)
		to = to.AddDate(0, 0, 1)
	}
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		var errs parley.FieldErrors
		errs.Add("date_to", "The date to must not be before the date from.")
		err = &parley.Error{Code: parley.Invalid, Message: parley.ValidationFailed, Fields: errs}
	}
	return from, to, err
}
