package sandbox

import (
	"strconv"
	"strings"
)

// numerals are the English number words below a hundred.
var numerals = map[string]int{
	"zero": 0, "oh": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
	"ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17,
	"eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}

var multipliers = map[string]int{"hundred": 100, "thousand": 1000, "million": 1_000_000}

// words splits a text into lowercase words without their punctuation; "twenty-three"
// is two.
func wordsOf(text string) []string {
	fields := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r == ' ' || r == '-' || r == '\n' || r == '\t' })
	out := fields[:0]
	for _, f := range fields {
		if f = strings.Trim(f, `.,;:!?"'()[]…`); f != "" {
			out = append(out, f)
		}
	}
	return out
}

// spokenNumber reads the first number in a text, as people say or write it: "4711",
// "4 7 1 1", "four seven one one", "forty-seven eleven", "two thousand and five",
// "12.5". Numbers said one after another are read as one: that is how people
// dictate. The digits keep their leading zeros.
func spokenNumber(text string) (digits string, ok bool) {
	var groups strings.Builder
	words := wordsOf(text)
	for i := 0; i < len(words); {
		group, used := numberGroup(words[i:])
		if used == 0 {
			if groups.Len() > 0 {
				break
			}
			i++
			continue
		}
		groups.WriteString(group)
		i += used
	}
	return groups.String(), groups.Len() > 0
}

// numberGroup reads one number at the front of words and says how many it took.
func numberGroup(words []string) (string, int) {
	if d := written(words[0]); d != "" {
		return d, 1
	}
	total, current, used := 0, 0, 0
	for used < len(words) {
		w := words[used]
		value, isNumeral := numerals[w]
		multiplier, isMultiplier := multipliers[w]
		switch {
		case isNumeral && (used == 0 || joins(words[used-1], value, current)):
			current += value
		case isMultiplier && used > 0 && multiplier == 100 && current > 0 && current < 100:
			current *= 100
		case isMultiplier && used > 0 && multiplier > 100 && current > 0:
			total += current * multiplier
			current = 0
		case w == "and" && used > 0 && multipliers[words[used-1]] > 0 && used+1 < len(words) && isNumeralWord(words[used+1]):
		default:
			if used == 0 {
				return "", 0
			}
			return strconv.Itoa(total + current), used
		}
		used++
	}
	return strconv.Itoa(total + current), used
}

func isNumeralWord(w string) bool {
	_, ok := numerals[w]
	return ok
}

// joins says whether a numeral goes on the number before it: twenty and three do,
// seven and one do not.
func joins(before string, value, current int) bool {
	if multipliers[before] > 0 || before == "and" {
		return true
	}
	return value > 0 && value < 10 && current%100 >= 20 && current%10 == 0
}

// written is a number in digits, without its separators and signs.
func written(w string) string {
	w = strings.TrimLeft(w, "#$€£+")
	w = strings.TrimRight(w, "%€$£")
	if w == "" || w[0] < '0' || w[0] > '9' {
		return ""
	}
	point := false
	for i := range len(w) {
		switch c := w[i]; {
		case c >= '0' && c <= '9':
		case c == '.' && !point && i+1 < len(w):
			point = true
		case c == ',' || c == '/':
		default:
			return ""
		}
	}
	return separators.Replace(w)
}

var separators = strings.NewReplacer(",", "", "/", "")

// number is digits as a JSON number.
func number(digits string) any {
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return nil
	}
	return f
}
