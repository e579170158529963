package parley

// Voice is one an assistant can speak with.
type Voice struct {
	ID         ID
	Name       string
	Mode       Mode
	Provider   string // who speaks it, and under which name
	Key        string
	LanguageID *ID // nil: any language
	UserID     *ID // nil: everybody's; else the owner's alone
}

// Model is a language model.
type Model struct {
	ID       ID
	Name     string
	Provider string
	Key      string
}

// Language is one an assistant can hear and speak.
type Language struct {
	ID   ID
	Name string
	ISO2 string
}

// Catalogue is what the configured providers offer.
type Catalogue struct {
	Providers []string // all that are configured
	Unknown   []string // those of them that could not be asked: what was known of them stays
	Voices    []OfferedVoice
	Models    []Model
	Languages []Language
}

// OfferedVoice is a voice whose language is not looked up yet.
type OfferedVoice struct {
	Voice

	Language string // ISO 639-1; empty for any
}

// Sandbox is the provider that needs no key and no network.
const Sandbox = "sandbox"

// SandboxVoices differ in pitch. A multimodal voice belongs to the speech-to-speech model.
var SandboxVoices = []Voice{
	{Name: "Sandbox Alto", Mode: Pipeline, Provider: Sandbox, Key: "alto"},
	{Name: "Sandbox Soprano", Mode: Pipeline, Provider: Sandbox, Key: "soprano"},
	{Name: "Sandbox Tenor", Mode: Pipeline, Provider: Sandbox, Key: "tenor"},
	{Name: "Sandbox Bass", Mode: Pipeline, Provider: Sandbox, Key: "bass"},
	{Name: "Sandbox Alto Live", Mode: Multimodal, Provider: Sandbox, Key: "alto"},
	{Name: "Sandbox Tenor Live", Mode: Multimodal, Provider: Sandbox, Key: "tenor"},
}

// SandboxModels follow the same dialogue: the first answers at once, the second
// with the delays of a model behind a network.
var SandboxModels = []Model{
	{Name: "sandbox", Provider: Sandbox, Key: "instant"},
	{Name: "sandbox-realistic", Provider: Sandbox, Key: "realistic"},
}

// Languages is the catalogue every installation begins with.
var Languages = []Language{
	{Name: "English", ISO2: "en"}, {Name: "German", ISO2: "de"}, {Name: "French", ISO2: "fr"}, {Name: "Spanish", ISO2: "es"},
	{Name: "Italian", ISO2: "it"}, {Name: "Portuguese", ISO2: "pt"}, {Name: "Dutch", ISO2: "nl"}, {Name: "Polish", ISO2: "pl"},
	{Name: "Turkish", ISO2: "tr"}, {Name: "Russian", ISO2: "ru"}, {Name: "Ukrainian", ISO2: "uk"}, {Name: "Czech", ISO2: "cs"},
	{Name: "Slovak", ISO2: "sk"}, {Name: "Slovenian", ISO2: "sl"}, {Name: "Croatian", ISO2: "hr"}, {Name: "Serbian", ISO2: "sr"},
	{Name: "Bulgarian", ISO2: "bg"}, {Name: "Romanian", ISO2: "ro"}, {Name: "Hungarian", ISO2: "hu"}, {Name: "Greek", ISO2: "el"},
	{Name: "Danish", ISO2: "da"}, {Name: "Swedish", ISO2: "sv"}, {Name: "Norwegian", ISO2: "no"}, {Name: "Finnish", ISO2: "fi"},
	{Name: "Estonian", ISO2: "et"}, {Name: "Latvian", ISO2: "lv"}, {Name: "Lithuanian", ISO2: "lt"}, {Name: "Catalan", ISO2: "ca"},
	{Name: "Arabic", ISO2: "ar"}, {Name: "Hebrew", ISO2: "he"}, {Name: "Hindi", ISO2: "hi"}, {Name: "Bengali", ISO2: "bn"},
	{Name: "Tamil", ISO2: "ta"}, {Name: "Urdu", ISO2: "ur"}, {Name: "Chinese", ISO2: "zh"}, {Name: "Japanese", ISO2: "ja"},
	{Name: "Korean", ISO2: "ko"}, {Name: "Vietnamese", ISO2: "vi"}, {Name: "Thai", ISO2: "th"}, {Name: "Indonesian", ISO2: "id"},
	{Name: "Malay", ISO2: "ms"}, {Name: "Filipino", ISO2: "tl"},
}
