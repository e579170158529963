package converse

// hesitations announce more, in every language.
var hesitations = setOf("um", "uh", "uhm", "er", "erm", "äh", "ähm", "hm", "euh", "eh", "este", "ehm", "cioè")

// dangling words want another one behind them.
var dangling = map[string]map[string]bool{
	"en": setOf("and", "or", "but", "so", "because", "if", "when", "that", "which", "the", "a", "an", "my", "your", "our", "his", "her", "their", "to", "of", "for", "with", "from", "at", "in", "on", "by", "is", "are", "was", "i", "im", "its", "like", "about", "then", "than", "as", "would", "could", "can", "will", "well"),
	"de": setOf("und", "oder", "aber", "weil", "wenn", "dass", "der", "die", "das", "den", "dem", "ein", "eine", "einen", "einem", "mein", "meine", "meinen", "zu", "von", "für", "mit", "bei", "in", "im", "am", "auf", "an", "ist", "sind", "war", "ich", "also", "dann", "als", "wie"),
	"fr": setOf("et", "ou", "mais", "parce", "que", "si", "quand", "le", "la", "les", "un", "une", "des", "mon", "ma", "mes", "à", "de", "du", "pour", "avec", "chez", "dans", "sur", "par", "est", "je", "donc", "alors", "comme"),
	"es": setOf("y", "o", "pero", "porque", "que", "si", "cuando", "el", "la", "los", "las", "un", "una", "mi", "mis", "a", "de", "del", "para", "con", "en", "por", "es", "yo", "entonces", "como"),
	"it": setOf("e", "o", "ma", "perché", "che", "se", "quando", "il", "lo", "la", "i", "gli", "le", "un", "una", "mio", "mia", "a", "di", "del", "per", "con", "in", "su", "da", "è", "io", "quindi", "come"),
	"pt": setOf("e", "ou", "mas", "porque", "que", "se", "quando", "o", "a", "os", "as", "um", "uma", "meu", "minha", "de", "do", "da", "para", "com", "em", "por", "é", "eu", "então", "como"),
	"nl": setOf("en", "of", "maar", "omdat", "dat", "als", "wanneer", "de", "het", "een", "mijn", "te", "van", "voor", "met", "bij", "in", "op", "aan", "door", "is", "zijn", "was", "ik", "dus", "dan", "zoals"),
}

// announcements promise a number or a name.
var announcements = map[string][]string{
	"en": {"my number is", "the number is", "my name is", "my address is", "my email is", "it is", "that is", "let me see", "hold on", "one moment", "just a second"},
	"de": {"meine nummer ist", "die nummer ist", "mein name ist", "ich heiße", "meine adresse ist", "moment", "einen moment"},
	"fr": {"mon numéro est", "mon numéro cest", "je mappelle", "mon nom est", "mon adresse est", "un instant", "attendez"},
	"es": {"mi número es", "me llamo", "mi nombre es", "mi dirección es", "un momento", "espere"},
	"it": {"il mio numero è", "mi chiamo", "il mio nome è", "il mio indirizzo è", "un momento", "un attimo"},
	"pt": {"o meu número é", "meu número é", "chamo me", "meu nome é", "a minha morada é", "um momento"},
	"nl": {"mijn nummer is", "mijn naam is", "ik heet", "mijn adres is", "een moment", "momentje"},
}
