package sip

import (
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// dialled writes an E.164 number the way a carrier wants it.
func dialled(number, format string) string {
	if !strings.HasPrefix(number, "+") {
		return number // an extension or a name, not a number
	}
	switch format {
	case "e164":
		return number[1:]
	case "national":
		parsed, err := phonenumbers.Parse(number, "")
		if err != nil {
			return number[1:]
		}
		return digitsOf(phonenumbers.Format(parsed, phonenumbers.NATIONAL))
	default:
		return number
	}
}

func digitsOf(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, s)
}

// received reads a number as a carrier wrote it back into E.164. What is not a number
// stays as it is; a national number cannot be told from an extension and stays too.
func received(user, format string) string {
	user, _, _ = strings.Cut(user, ";") // RFC 3966 parameters
	plain := strings.Map(func(r rune) rune {
		if strings.ContainsRune("-.()", r) { // RFC 3966 visual separators
			return -1
		}
		return r
	}, user)
	digits := digitsOf(plain)
	switch {
	case plain == "+"+digits && digits != "":
		return plain
	case plain == digits && strings.HasPrefix(digits, "00") && len(digits) > 8:
		return "+" + digits[2:]
	case plain == digits && format == "e164" && len(digits) >= 7 && digits[0] != '0':
		return "+" + digits
	default:
		return user
	}
}
