package converse

// ownFillers are said where an assistant names none of its own: by language and
// mood (neutral, negative, positive, question). Any other language keeps silent.
var ownFillers = map[string][4][]string{
	"en": {{"Let me see.", "One moment.", "All right."}, {"I understand.", "I am sorry to hear that."}, {"Great.", "Very good."}, {"Good question.", "Let me check."}},
	"de": {{"Moment.", "Einen Augenblick.", "Alles klar."}, {"Ich verstehe.", "Das tut mir leid."}, {"Sehr schön.", "Prima."}, {"Gute Frage.", "Ich sehe nach."}},
	"fr": {{"Voyons.", "Un instant.", "D'accord."}, {"Je comprends.", "Je suis désolé."}, {"Parfait.", "Très bien."}, {"Bonne question.", "Je vérifie."}},
	"es": {{"Veamos.", "Un momento.", "De acuerdo."}, {"Entiendo.", "Lo siento."}, {"Perfecto.", "Muy bien."}, {"Buena pregunta.", "Lo compruebo."}},
	"it": {{"Vediamo.", "Un momento.", "D'accordo."}, {"Capisco.", "Mi dispiace."}, {"Perfetto.", "Molto bene."}, {"Bella domanda.", "Controllo subito."}},
	"pt": {{"Vejamos.", "Um momento.", "Está bem."}, {"Compreendo.", "Lamento."}, {"Perfeito.", "Muito bem."}, {"Boa pergunta.", "Vou verificar."}},
	"nl": {{"Even kijken.", "Een moment.", "Goed."}, {"Ik begrijp het.", "Dat spijt me."}, {"Heel goed.", "Prima."}, {"Goede vraag.", "Ik kijk het na."}},
}

// askers begin a question.
var askers = map[string]map[string]bool{
	"en": setOf("who", "what", "when", "where", "why", "how", "which", "can", "could", "do", "does", "is", "are", "will", "would"),
	"de": setOf("wer", "was", "wann", "wo", "warum", "wie", "welche", "welcher", "können", "kann", "ist", "sind", "haben", "gibt"),
	"fr": setOf("qui", "que", "quand", "où", "pourquoi", "comment", "quel", "quelle", "estce", "combien"),
	"es": setOf("quién", "qué", "cuándo", "dónde", "cómo", "cuál", "cuánto", "puede", "por"),
	"it": setOf("chi", "cosa", "quando", "dove", "perché", "come", "quale", "quanto", "può"),
	"pt": setOf("quem", "quando", "onde", "como", "qual", "quanto", "pode"),
	"nl": setOf("wie", "wat", "wanneer", "waar", "waarom", "hoe", "welke", "kunt", "kan", "is"),
}

var unhappy = map[string]map[string]bool{
	"en": setOf("no", "not", "dont", "cant", "wont", "bad", "wrong", "problem", "broken", "angry", "terrible", "awful", "unhappy", "complaint", "never", "late", "disappointed", "upset", "sorry"),
	"de": setOf("nein", "nicht", "kein", "keine", "schlecht", "falsch", "problem", "kaputt", "ärgerlich", "furchtbar", "beschwerde", "nie", "enttäuscht", "leider"),
	"fr": setOf("non", "pas", "mauvais", "faux", "problème", "cassé", "terrible", "jamais", "déçu", "plainte"),
	"es": setOf("no", "mal", "malo", "problema", "roto", "terrible", "nunca", "queja", "decepcionado"),
	"it": setOf("no", "non", "male", "problema", "rotto", "terribile", "mai", "reclamo", "deluso"),
	"pt": setOf("não", "mal", "mau", "problema", "partido", "quebrado", "terrível", "nunca", "reclamação"),
	"nl": setOf("nee", "niet", "geen", "slecht", "fout", "probleem", "kapot", "vreselijk", "nooit", "klacht"),
}

var happy = map[string]map[string]bool{
	"en": setOf("yes", "great", "good", "wonderful", "perfect", "thanks", "thank", "love", "nice", "excellent", "happy", "sure", "fantastic"),
	"de": setOf("ja", "gut", "super", "toll", "perfekt", "danke", "gerne", "gern", "schön", "wunderbar", "freut"),
	"fr": setOf("oui", "bien", "super", "parfait", "merci", "génial", "volontiers", "excellent"),
	"es": setOf("sí", "bien", "genial", "perfecto", "gracias", "excelente", "encantado"),
	"it": setOf("sì", "bene", "ottimo", "perfetto", "grazie", "volentieri", "fantastico"),
	"pt": setOf("sim", "bem", "ótimo", "perfeito", "obrigado", "obrigada", "excelente"),
	"nl": setOf("ja", "goed", "mooi", "perfect", "dank", "bedankt", "graag", "geweldig"),
}
