package converse

var phraseBook = map[string]phrases{
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
