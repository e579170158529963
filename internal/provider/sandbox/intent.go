package sandbox

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// What customers mean, by the phrases they use for it. The list is short: the
// sandbox is a practice partner, not a mind.
var (
	optOutPhrases = phrases(
		`(?:do not|don't|never|stop|no longer|quit) (?:ever )?(?:call|calling|phone|phoning|ring|ringing|contact|contacting)(?: me| us| this number| here| again)`,
		`stop calling`, `take (?:me|us|my number|this number) off`, `remove (?:me|us|my number|this number)`,
		`do[- ]not[- ]call list`, `no more calls`, `never be called`, `not want to be called`, `don't want (?:any more|these|your) calls`)
	humanPhrases = phrases(
		`(?:a |the |some )?(?:human|real person|live person|live agent|agent|representative|operator|supervisor|manager)(?: being)?`,
		`(?:speak|talk) (?:to|with) (?:a person|somebody|someone|a colleague)`, `(?:transfer|connect|forward) me`, `put me through`)
	goodbyePhrases = phrases(
		`good ?bye`, `bye(?:[- ]bye)?`, `that(?:'s| is| was| will be| would be)? all(?: for (?:today|now))?`, `that(?:'s| is) it`, `nothing (?:else|more)`,
		`no(?:pe)?,? (?:thanks|thank you|that's fine)`, `have a (?:nice|good|great) (?:day|evening|weekend|one)`, `hang up`, `talk to you later`, `i have to go`)
	refusalPhrases = phrases(
		`not interested`, `no interest`, `wrong number`, `no time`, `(?:not|isn't) a good time`, `(?:am|i'm) (?:too )?busy`, `call (?:me )?(?:back )?later`, `leave me alone`)
	yesPhrases = phrases(
		`yes`, `yeah`, `yep`, `yup`, `sure`, `of course`, `certainly`, `correct`, `right`, `absolutely`, `definitely`, `ok(?:ay)?`, `please do`, `i do`, `it is`, `that works`, `fine`, `true`)
	noPhrases = phrases(
		`no`, `nope`, `nah`, `not (?:really|yet|at all|now|today)`, `never`, `i don't`, `i do not`, `it isn't`, `it is not`, `false`, `rather not`)
	howAreYou  = phrases(`how are you(?: doing)?`, `how do you do`, `how's it going`)
	repeatWish = phrases(`(?:say|repeat) that(?: again)?`, `say it again`, `pardon(?: me)?`, `could you repeat`, `what did you say`, `come again`)
	pressKey   = regexp.MustCompile(`(?i)(?:press|dial|enter|push)(?: the)?(?: number| key)? (\w+)(?: (?:to|for)([^.,;]*))?|for ([^.,;]*?),? (?:press|dial|push) (\w+)`)
)

// phrase is one of several ways to say something, in whole words. It is looked for
// where words begin: to look everywhere takes four times as long.
type phrase struct{ here *regexp.Regexp }

// MatchString says whether a text has it.
func (p *phrase) MatchString(text string) bool { return p.index(text) >= 0 }

// index is where a text has it first, or -1.
func (p *phrase) index(text string) int {
	before := ' '
	for i, r := range text {
		if !unicode.IsLetter(before) && !unicode.IsNumber(before) && p.here.MatchString(text[i:]) {
			return i
		}
		before = r
	}
	return -1
}

// phrases makes a phrase of its alternatives. Prompts bring their own in every turn,
// and compiling costs more than all the rest of an answer: what was compiled is kept.
func phrases(alternatives ...string) *phrase {
	key := strings.Join(alternatives, "|")
	known.Lock()
	defer known.Unlock()
	if known.phrases[key] == nil {
		if known.phrases == nil || len(known.phrases) >= mostPhrases {
			known.phrases = map[string]*phrase{}
		}
		known.phrases[key] = &phrase{regexp.MustCompile(`(?i)^(?:` + key + `)(?:$|[^\pL\pN'])`)}
	}
	return known.phrases[key]
}

// mostPhrases bounds what is kept; beyond it everything is compiled anew.
const mostPhrases = 4096

var known struct {
	sync.Mutex
	phrases map[string]*phrase
}

// yesNo is the customer's answer to a question, by the first word that is one.
func yesNo(text string) (yes, known bool) {
	text = plain(text)
	y, n := yesPhrases.index(text), noPhrases.index(text)
	switch {
	case y < 0 && n < 0:
		return false, false
	case n < 0 || y >= 0 && y < n:
		return true, true
	default:
		return false, true
	}
}

// plain writes apostrophes in the one way the phrases have them.
func plain(text string) string { return strings.ReplaceAll(text, "’", "'") }

// menuKey is the key that a telephone menu wants pressed: the one for a person if
// it says so, else the first.
func menuKey(text string) (string, bool) {
	first := ""
	for _, m := range pressKey.FindAllStringSubmatch(text, -1) {
		key, purpose := m[1], m[2]
		if key == "" {
			key, purpose = m[4], m[3]
		}
		digit, ok := spokenNumber(key)
		switch strings.ToLower(key) {
		case "star":
			digit, ok = "*", true
		case "pound", "hash":
			digit, ok = "#", true
		}
		if !ok {
			continue
		}
		if humanPhrases.MatchString(purpose) || strings.Contains(purpose, "speak") || strings.Contains(purpose, "someone") {
			return digit, true
		}
		if first == "" {
			first = digit
		}
	}
	return first, first != ""
}
