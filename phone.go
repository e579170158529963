package parley

import (
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PhoneNumber is a line: a number that assistants answer or call from.
type PhoneNumber struct {
	ID          ID
	UserID      ID
	Number      string
	CountryCode string
	Type        string
	TrunkID     *ID
	Available   bool // can be given to a new inbound assistant
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// The types of a line. A caller ID can be shown but not called.
const (
	NormalNumber   = "Normal"
	SIPNumber      = "SIP"
	CallerIDNumber = "Caller ID"
)

// NumberAssigned refuses a line that already rings elsewhere.
const NumberAssigned = "The selected phone number id is already assigned to another inbound assistant."

// PhoneNumberForm is the table of a line.
var PhoneNumberForm = Form[PhoneNumber]{
	{Name: "id", At: func(n *PhoneNumber) any { return &n.ID }, Rule: readOnly, Example: 3},
	{Name: "phone_number", At: func(n *PhoneNumber) any { return &n.Number }, Rule: Rule{Required: true, Check: E164}, Effect: "The number in E.164 form.", Example: "+12025550180"},
	{Name: "country_code", At: func(n *PhoneNumber) any { return &n.CountryCode }, Rule: Rule{Match: regexp.MustCompile(`^[A-Z]{2}$`), MatchText: "The country code must be two capital letters, such as US."},
		Effect: "The country in two letters; found from the number when not sent.", Example: "US"},
	{Name: "type_label", At: func(n *PhoneNumber) any { return &n.Type }, Rule: Rule{Required: true, In: []string{NormalNumber, SIPNumber, CallerIDNumber}},
		Effect: "Caller ID numbers can be shown to the customer but not be called.", Example: NormalNumber},
	{Name: "is_available", At: func(n *PhoneNumber) any { return &n.Available }, Rule: readOnly, Effect: "Whether it can be given to a new inbound assistant."},
}

// OwnNumberForm is PhoneNumberForm with what only the line's administration shows.
var OwnNumberForm = append(slices.Clip(PhoneNumberForm), Form[PhoneNumber]{
	{Name: "sip_trunk_id", At: func(n *PhoneNumber) any { return &n.TrunkID }, Effect: "The SIP trunk that carries it; null for the operator's default.", Example: 1},
	{Name: "created_at", At: func(n *PhoneNumber) any { return &n.CreatedAt }, Rule: readOnly},
	{Name: "updated_at", At: func(n *PhoneNumber) any { return &n.UpdatedAt }, Rule: readOnly},
}...)

// Trunk is a user's connection to a SIP carrier.
type Trunk struct {
	ID             ID
	UserID         ID
	Address        string
	Transport      string
	Username       string
	Password       string // sealed at rest, never shown
	Register       bool
	OutboundProxy  *string
	AllowedInbound []string
	CallingFormat  string
	MaxChannels    int
	CallsPerSecond int
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

// TrunkForm is the table of a SIP trunk.
var TrunkForm = Form[Trunk]{
	{Name: "id", At: func(t *Trunk) any { return &t.ID }, Rule: readOnly, Example: 1},
	{Name: "sip_address", At: func(t *Trunk) any { return &t.Address }, Rule: Rule{Required: true, Max: 255, Check: HostPort}, Effect: "The carrier's host, or host:port.", Example: "sip.carrier.example.com:5060"},
	{Name: "transport", At: func(t *Trunk) any { return &t.Transport }, Rule: Rule{In: []string{"udp", "tcp", "tls"}}, Default: "udp", Effect: "How SIP travels to the carrier."},
	{Name: "sip_username", At: func(t *Trunk) any { return &t.Username }, Rule: Rule{Max: 255, Check: headerValue}, Effect: "For digest authentication; empty for none.", Example: "parley"},
	{Name: "sip_password", At: func(t *Trunk) any { return &t.Password }, Rule: Rule{WriteOnly: true, Max: 255}, Effect: "For digest authentication. Encrypted at rest and never shown.", Example: "s3cret"},
	{Name: "register", At: func(t *Trunk) any { return &t.Register }, Default: false, Effect: "Registers with the carrier so that inbound calls reach this installation."},
	{Name: "outbound_proxy", At: func(t *Trunk) any { return &t.OutboundProxy }, Rule: Rule{Max: 255, Check: HostPort}, Effect: "The host, or host:port, that requests are sent to instead of sip_address.", Example: "proxy.carrier.example.com"},
	{Name: "allowed_inbound_ips", At: func(t *Trunk) any { return &t.AllowedInbound }, Rule: Rule{Max: 100}, Default: []string{}, Effect: "Addresses or networks whose calls are accepted without a password.", Example: []string{"203.0.113.0/28"}},
	{Name: "calling_format", At: func(t *Trunk) any { return &t.CallingFormat }, Rule: Rule{In: []string{"+e164", "e164", "national"}}, Default: "+e164", Effect: "How numbers are written to the carrier."},
	{Name: "max_channels", At: func(t *Trunk) any { return &t.MaxChannels }, Rule: Rule{Min: 1, Max: 10000}, Default: 10, Effect: "How many calls it carries at once."},
	{Name: "calls_per_second", At: func(t *Trunk) any { return &t.CallsPerSecond }, Rule: Rule{Min: 1, Max: 1000}, Default: 1, Effect: "How many calls are started on it in a second."},
	{Name: "created_at", At: func(t *Trunk) any { return &t.CreatedAt }, Rule: readOnly},
	{Name: "updated_at", At: func(t *Trunk) any { return &t.UpdatedAt }, Rule: readOnly},
}

// CreatePhoneNumber makes a line from a request. Its trunk is still to be looked up.
func CreatePhoneNumber(in Input) (*PhoneNumber, FieldErrors) {
	n := &PhoneNumber{}
	_, errs := OwnNumberForm.Create(in, n)
	return n, errs
}

// Update changes a line to what a request supplies.
func (n *PhoneNumber) Update(in Input) FieldErrors {
	_, errs := OwnNumberForm.Update(in, n)
	return errs
}

// CreateTrunk makes a SIP trunk from a request.
func CreateTrunk(in Input) (*Trunk, error) {
	t := &Trunk{}
	_, errs := TrunkForm.Create(in, t)
	return t, t.settle(errs)
}

// Update changes a trunk to what a request supplies.
func (t *Trunk) Update(in Input) error {
	_, errs := TrunkForm.Update(in, t)
	return t.settle(errs)
}

func (t *Trunk) settle(errs FieldErrors) error {
	for i, address := range t.AllowedInbound {
		_, err := netip.ParsePrefix(address)
		if err != nil {
			_, err = netip.ParseAddr(address)
		}
		if err != nil {
			path := "allowed_inbound_ips." + strconv.Itoa(i)
			errs.Add(path, "The "+Spaced(path)+" must be an IP address or a network such as 203.0.113.0/28.")
		}
	}
	if t.Register && t.Username == "" && !errs.Has("sip_username") {
		errs.Add("sip_username", "The sip username field is required when register is true.")
	}
	return invalid(errs, ValidationFailed)
}

var e164 = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)

// E164 checks the form of a number, not the numbering plan.
func E164(s string) string {
	if !e164.MatchString(s) {
		return "must be a phone number in E.164 form, such as +12025550100."
	}
	return ""
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?\.?$`)

// HostPort checks a host name or address with or without a port.
func HostPort(s string) string {
	const wrong = "must be a host or host:port, such as sip.example.com:5060."
	if address, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil && address.IsValid() {
		return ""
	}
	host := s
	if strings.Contains(s, ":") {
		var port string
		var err error
		if host, port, err = net.SplitHostPort(s); err != nil {
			return wrong
		}
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return wrong
		}
		if _, err := netip.ParseAddr(host); err == nil {
			return ""
		}
	}
	if !hostName.MatchString(host) {
		return wrong
	}
	return ""
}
