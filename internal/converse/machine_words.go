package converse

// machinePhrase is something that answering machines say, and how much it weighs. A
// negative weight is something that only a person asks.
type machinePhrase struct {
	words  string
	weight int
}

// The phrases are plain words. 4 is proof, 2 is what a receptionist might also say.
var machinePhrases = map[string][]machinePhrase{
	"en": {
		{"leave a message", 4}, {"leave me a message", 4}, {"leave your message", 4}, {"leave your name", 4}, {"leave a brief message", 4}, {"leave a detailed message", 4}, {"leave a short message", 4},
		{"after the tone", 4}, {"after the beep", 4}, {"at the tone", 4}, {"at the beep", 4}, {"record your message", 4}, {"voicemail", 4}, {"voice mail", 4}, {"voice mailbox", 4}, {"mailbox", 4},
		{"answering machine", 4}, {"forwarded to", 2}, {"has been forwarded", 4}, {"the person you are calling", 2}, {"the person you have called", 2}, {"the number you have dialed", 4}, {"the number you have reached", 4}, {"the subscriber", 4},
		{"youve reached", 2}, {"you have reached", 2}, {"cant come to the phone", 2}, {"cannot come to the phone", 2}, {"cant take your call", 2}, {"cannot take your call", 2}, {"unable to take your call", 2}, {"unable to answer", 2}, {"unable to come to the phone", 2},
		{"not available", 2}, {"is unavailable", 2}, {"get back to you", 2}, {"return your call", 2}, {"call you back as soon", 2}, {"missed your call", 2}, {"office is closed", 2}, {"we are closed", 2}, {"currently closed", 2}, {"our office hours", 2},
		{"not in right now", 2}, {"away from my desk", 2}, {"away from the phone", 2}, {"on the other line", 2}, {"you know what to do", 4},
		{"can i take a message", -4}, {"may i take a message", -4}, {"take a message", -4}, {"how can i help", -4}, {"how may i help", -4}, {"whos calling", -4}, {"who is calling", -4}, {"whos this", -4}, {"who is this", -4}, {"speaking", -2}, {"can you hold", -4},
	},
	"de": {
		{"hinterlassen sie", 4}, {"hinterlasst", 4}, {"hinterlass", 4}, {"nach dem ton", 4}, {"nach dem signalton", 4}, {"nach dem piepton", 4}, {"nach dem piep", 4}, {"mailbox", 4}, {"anrufbeantworter", 4}, {"sprachbox", 4}, {"auf band", 2},
		{"nicht erreichbar", 2}, {"nicht zu hause", 2}, {"nicht da", 2}, {"momentan nicht", 2}, {"rufe zurück", 2}, {"rufen zurück", 2}, {"rufen sie zurück", 2}, {"der teilnehmer", 4}, {"der gewünschte gesprächspartner", 4}, {"unsere bürozeiten", 2}, {"außerhalb unserer", 2},
		{"was kann ich für sie tun", -4}, {"wer ist da", -4}, {"wie kann ich helfen", -4}, {"am apparat", -2}, {"wer spricht", -4},
	},
	"fr": {
		{"laissez un message", 4}, {"laissez moi un message", 4}, {"laisser un message", 4}, {"après le bip", 4}, {"après le signal sonore", 4}, {"messagerie", 4}, {"répondeur", 4}, {"boîte vocale", 4},
		{"vous êtes bien", 2}, {"ne suis pas disponible", 2}, {"pas disponible", 2}, {"je vous rappellerai", 2}, {"votre correspondant", 4}, {"absent", 1},
		{"qui est à lappareil", -4}, {"cest de la part de qui", -4}, {"que puis je faire", -4},
	},
	"es": {
		{"deje un mensaje", 4}, {"deje su mensaje", 4}, {"deja un mensaje", 4}, {"deja tu mensaje", 4}, {"después de la señal", 4}, {"después del tono", 4}, {"buzón", 4}, {"contestador", 4},
		{"no está disponible", 2}, {"no puedo atender", 2}, {"en este momento no", 2}, {"le llamaré", 2}, {"el número marcado", 4}, {"quién es", -4}, {"de parte de quién", -4}, {"en qué puedo ayudar", -4},
	},
	"it": {
		{"lasciate un messaggio", 4}, {"lascia un messaggio", 4}, {"lasciare un messaggio", 4}, {"dopo il segnale", 4}, {"dopo il bip", 4}, {"segreteria telefonica", 4}, {"casella vocale", 4},
		{"non sono in casa", 2}, {"non è raggiungibile", 4}, {"al momento non", 2}, {"vi richiamerò", 2}, {"chi parla", -4}, {"come posso aiutarla", -4},
	},
	"pt": {
		{"deixe uma mensagem", 4}, {"deixe a sua mensagem", 4}, {"deixe sua mensagem", 4}, {"após o sinal", 4}, {"depois do sinal", 4}, {"caixa postal", 4}, {"correio de voz", 4}, {"não está disponível", 2}, {"neste momento não", 2}, {"quem fala", -4}, {"em que posso ajudar", -4},
	},
	"nl": {
		{"laat een bericht achter", 4}, {"spreek een bericht in", 4}, {"spreek na de piep", 4}, {"na de piep", 4}, {"na de toon", 4}, {"voicemail", 4}, {"antwoordapparaat", 4}, {"niet bereikbaar", 2}, {"niet thuis", 2}, {"bel terug", 2}, {"met wie spreek ik", -4}, {"waarmee kan ik helpen", -4},
	},
}

// menuPhrases are said by machines that are no answering machines.
var menuPhrases = map[string][]string{
	"en": {"press 1", "press one", "press 2", "press two", "press 0", "press zero", "press any key", "main menu", "listen to the following options", "following options", "state your name", "say your name", "reason for your call", "reason for calling", "screening", "call assist", "stay on the line", "next available"},
	"de": {"drücken sie", "hauptmenü", "wählen sie", "nennen sie ihren namen", "bleiben sie am apparat", "bleiben sie in der leitung"},
	"fr": {"tapez", "appuyez sur", "menu principal", "ne quittez pas", "dites votre nom"},
	"es": {"pulse", "presione", "marque", "menú principal", "diga su nombre"},
	"it": {"prema", "digiti", "menu principale", "dica il suo nome"},
	"pt": {"pressione", "digite", "prima a tecla", "menu principal", "diga o seu nome"},
	"nl": {"toets", "druk op", "hoofdmenu", "zeg uw naam"},
}
