package parley

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"maps"
	"math/big"
	"net/mail"
	"slices"
	"strings"
	"time"
)

// User owns assistants, tools, lines and calls, and sees nobody else's.
type User struct {
	ID        ID
	Email     string
	Name      string
	Plan      string
	CreatedAt time.Time
}

// Plan limits what a user may create.
type Plan struct {
	Tools int // 0: no limit
}

// DefaultPlan is a new user's.
const DefaultPlan = "default"

var plans = map[string]Plan{
	DefaultPlan: {Tools: 5},
	"pro":       {Tools: 50},
	"unlimited": {},
}

// Plans are the names an operator can choose from.
func Plans() []string { return slices.Sorted(maps.Keys(plans)) }

// Limits is what the user's plan allows. A plan that no longer exists counts as the default one.
func (u *User) Limits() Plan {
	if plan, ok := plans[u.Plan]; ok {
		return plan
	}
	return plans[DefaultPlan]
}

// ErrToolLimit is the refusal of a tool beyond the plan's count.
func ErrToolLimit(limit int) *Error {
	return &Error{Code: Limit, Message: fmt.Sprintf(
		"You have reached the limit of %d mid call tools of your plan. Please upgrade your plan to create more.", limit)}
}

// NewUser checks what an operator typed.
func NewUser(email, name, plan string) (*User, error) {
	address, err := mail.ParseAddress(email)
	if err != nil || address.Address != email {
		return nil, &Error{Code: Invalid, Message: fmt.Sprintf("%q is not an e-mail address", email)}
	}
	if plan == "" {
		plan = DefaultPlan
	}
	if _, ok := plans[plan]; !ok {
		return nil, &Error{Code: Invalid, Message: fmt.Sprintf("there is no plan %q; choose one of %s", plan, strings.Join(Plans(), ", "))}
	}
	if name == "" {
		name, _, _ = strings.Cut(email, "@")
	}
	return &User{Email: strings.ToLower(email), Name: name, Plan: plan}, nil
}

// Token is an API key. Its secret is shown once, when it is made; only its hash is kept.
type Token struct {
	ID        ID
	UserID    ID
	Name      string
	CreatedAt time.Time
	RevokedAt *time.Time
}

// TokenForm is the table of an API key.
var TokenForm = Form[Token]{
	{Name: "id", At: func(t *Token) any { return &t.ID }, Rule: readOnly, Example: 2},
	{Name: "name", At: func(t *Token) any { return &t.Name }, Rule: Rule{Required: true, Max: 255}, Effect: "What the key is for.", Example: "CRM"},
	{Name: "created_at", At: func(t *Token) any { return &t.CreatedAt }, Rule: readOnly},
}

// CreateToken makes an API key from a request.
func CreateToken(in Input) (*Token, error) {
	token := &Token{}
	_, errs := TokenForm.Create(in, token)
	return token, invalid(errs, ValidationFailed)
}

const tokenAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// NewSecret is 43 random characters: 256 bits.
func NewSecret() string {
	var b strings.Builder
	for range 43 {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(tokenAlphabet))))
		if err != nil {
			panic(err) // crypto/rand never fails on a supported system
		}
		b.WriteByte(tokenAlphabet[n.Int64()])
	}
	return b.String()
}

// TokenText is a token as its user sees it: <number>|<secret>.
func TokenText(id ID, secret string) string { return fmt.Sprintf("%d|%s", id, secret) }

// HashToken is what is kept of a token. A plain hash is enough: the secret has 256
// random bits, so there is nothing to guess.
func HashToken(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// WeakToken says whether a token that an operator chose is too short to be safe.
func WeakToken(text string) bool { return len(text) < 32 }
