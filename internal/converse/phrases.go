package converse

import (
	"parley"
)

// phrases are the sentences that the engine itself says in a language. They are
// short, for they are said when something else was late or has gone wrong.
type phrases struct {
	stillThere string // after reengagement_interval
	closing    string // before max_duration
	patience   string // when an answer is late beyond politeness
	pardon     string // when words were said but not understood
	apology    string // when a provider has failed for good; the call ends after it
	goodbye    string // when the model ends the call without a word
	optedOut   string // short: the call must be over within two seconds
	callBack   string // before the number that a voicemail is given
}

// phrasesFor is a language's phrases; ok is false where Parley has none, and then
// the engine keeps silent or asks the model, rather than speak a language that the
// customer did not choose.
func phrasesFor(language string) (phrases, bool) {
	p, ok := phraseBook[language]
	return p, ok
}

var phraseBook = map[string]phrases{ //nolint:misspell // words of other languages
	"en": {"Are you still there?", "I am sorry, our time is up. Thank you for the call. Goodbye.", "One moment, please.", "I am sorry, I did not catch that. Could you say it again?",
		"I am sorry, I am having technical difficulties. Please try again later. Goodbye.", "Thank you. Goodbye.", "Understood. Goodbye.", "You can call us back at"},
	"de": {"Sind Sie noch da?", "Es tut mir leid, unsere Zeit ist um. Vielen Dank für das Gespräch. Auf Wiederhören.", "Einen Moment, bitte.", "Entschuldigung, das habe ich nicht verstanden. Können Sie es wiederholen?",
		"Es tut mir leid, ich habe technische Schwierigkeiten. Bitte versuchen Sie es später noch einmal. Auf Wiederhören.", "Vielen Dank. Auf Wiederhören.", "Verstanden. Auf Wiederhören.", "Sie erreichen uns unter"},
	"fr": {"Vous êtes toujours là ?", "Je suis désolé, notre temps est écoulé. Merci pour cet appel. Au revoir.", "Un instant, s'il vous plaît.", "Excusez-moi, je n'ai pas compris. Pouvez-vous répéter ?",
		"Je suis désolé, je rencontre un problème technique. Veuillez réessayer plus tard. Au revoir.", "Merci. Au revoir.", "Entendu. Au revoir.", "Vous pouvez nous rappeler au"},
	"es": {"¿Sigue ahí?", "Lo siento, se nos acabó el tiempo. Gracias por la llamada. Adiós.", "Un momento, por favor.", "Perdón, no le he entendido. ¿Puede repetirlo?",
		"Lo siento, tengo dificultades técnicas. Por favor, inténtelo más tarde. Adiós.", "Gracias. Adiós.", "Entendido. Adiós.", "Puede llamarnos al"},
	"it": {"È ancora lì?", "Mi dispiace, il nostro tempo è scaduto. Grazie per la chiamata. Arrivederci.", "Un momento, per favore.", "Mi scusi, non ho capito. Può ripetere?",
		"Mi dispiace, ho difficoltà tecniche. Riprovi più tardi, per favore. Arrivederci.", "Grazie. Arrivederci.", "Capito. Arrivederci.", "Può richiamarci al"},
	"pt": {"Ainda está aí?", "Lamento, o nosso tempo acabou. Obrigado pela chamada. Adeus.", "Um momento, por favor.", "Desculpe, não percebi. Pode repetir?",
		"Lamento, estou com dificuldades técnicas. Por favor, tente mais tarde. Adeus.", "Obrigado. Adeus.", "Entendido. Adeus.", "Pode ligar-nos para"},
	"nl": {"Bent u er nog?", "Het spijt me, onze tijd is om. Bedankt voor het gesprek. Tot ziens.", "Een moment, alstublieft.", "Sorry, dat heb ik niet verstaan. Kunt u het herhalen?",
		"Het spijt me, ik heb technische problemen. Probeer het later nog eens. Tot ziens.", "Bedankt. Tot ziens.", "Begrepen. Tot ziens.", "U kunt ons terugbellen op"},
}

// isoOf is the ISO 639-1 code of an assistant's language, which its record holds
// by name.
func isoOf(language string) string {
	for _, l := range parley.Languages {
		if l.Name == language || l.ISO2 == language {
			return l.ISO2
		}
	}
	return "en"
}
