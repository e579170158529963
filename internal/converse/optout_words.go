package converse

// limiting words turn "never" into "not then".
var limiting = setOf("before", "until", "till", "today", "tonight", "tomorrow", "at", "after", "on", "so", "unless", "vor", "bis", "heute", "morgen", "um", "am",
	"avant", "aujourdhui", "demain", "antes", "hasta", "hoy", "mañana", "prima", "fino", "oggi", "domani", "até", "hoje", "amanhã", "voor", "tot", "vandaag")

// The phrases are plain words: no case, no marks, "dont" for "don't".
var optOutPhrases = map[string][]string{
	"en": {"never call me again", "never call again", "never call this number again", "dont call me again", "do not call me again", "dont ever call me again", "dont call me anymore", "dont call me any more", "do not call me anymore",
		"dont call again", "do not call again", "dont call here again", "dont call this number", "do not call this number", "stop calling", "stop calling me", "quit calling me", "take me off your list", "take me off the list", "take my number off",
		"remove me from your list", "remove my number", "delete my number", "put me on your do not call list", "put me on the do not call list", "do not call list", "i dont want any more calls", "i dont want to be called", "i do not want to be called", "unsubscribe"},
	"de": {"rufen sie mich nie wieder an", "rufen sie mich nicht mehr an", "rufen sie nicht mehr an", "rufen sie nie wieder an", "rufen sie hier nicht mehr an", "ruf mich nie wieder an", "ruf mich nicht mehr an", "nie wieder anrufen", "nicht mehr anrufen",
		"nicht mehr angerufen werden", "keine anrufe mehr", "streichen sie mich von der liste", "nehmen sie mich von der liste", "löschen sie meine nummer", "hören sie auf mich anzurufen"},
	"fr": {"ne mappelez plus", "ne me rappelez plus", "ne mappelez plus jamais", "ne rappelez plus", "arrêtez de mappeler", "cessez de mappeler", "retirez moi de votre liste", "supprimez mon numéro", "je ne veux plus être appelé", "plus dappels"},
	"es": {"no me llame más", "no me llamen más", "no me llames más", "no me vuelva a llamar", "no me vuelvan a llamar", "nunca me llame", "dejen de llamarme", "deje de llamarme", "quíteme de la lista", "quítenme de la lista", "borre mi número", "no quiero más llamadas"},
	"it": {"non mi chiami più", "non mi chiamate più", "non chiamatemi più", "non richiamatemi", "non chiamare più", "smettete di chiamarmi", "smetta di chiamarmi", "toglietemi dalla lista", "cancellate il mio numero", "non voglio più chiamate"},
	"pt": {"não me ligue mais", "não me liguem mais", "não me volte a ligar", "não ligue mais", "pare de me ligar", "parem de me ligar", "tirem me da lista", "retire me da lista", "apague o meu número", "não quero mais chamadas"},
	"nl": {"bel me nooit meer", "bel me niet meer", "bel mij niet meer", "belt u mij niet meer", "nooit meer bellen", "niet meer bellen", "niet meer gebeld worden", "stop met bellen", "haal me van de lijst", "haal mij van de lijst", "verwijder mijn nummer"},
}

var unrecordedPhrases = map[string][]string{
	"en": {"dont record", "do not record", "stop recording", "i dont want to be recorded", "i do not want to be recorded", "turn off the recording", "i dont agree to be recorded", "i do not consent to recording", "no recording"},
	"de": {"nicht aufzeichnen", "nicht aufnehmen", "nicht aufgezeichnet werden", "nicht aufgenommen werden", "keine aufzeichnung", "keine aufnahme", "zeichnen sie das nicht auf", "nehmen sie das nicht auf"},
	"fr": {"nenregistrez pas", "ne menregistrez pas", "arrêtez lenregistrement", "pas denregistrement", "je ne veux pas être enregistré"},
	"es": {"no grabe", "no graben", "no me grabe", "no quiero que me graben", "pare la grabación", "sin grabación"},
	"it": {"non registrare", "non registri", "non registrate", "non voglio essere registrato", "niente registrazione"},
	"pt": {"não grave", "não gravem", "não quero ser gravado", "pare a gravação", "sem gravação"},
	"nl": {"niet opnemen", "niet opgenomen worden", "geen opname", "stop de opname"},
}
