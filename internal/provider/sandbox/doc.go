// Package sandbox is the provider that needs no key and no network: a speaker, a
// transcriber, a language model and a speech-to-speech model that are deterministic,
// fast and free, and that go through everything a real one does. The speaker writes
// the words into the sound and the transcriber reads them out of the samples that
// arrived, so that what a transcript shows went through the whole media path: a
// word is there because its sound was, and damage shows as damage.
//
// The package must not know telephone lines, the turn engine's state or the
// database: it implements the engine's provider interfaces, and nothing else.
//
// # The model
//
// The model is a small dialogue policy in English. It greets, asks for what it has
// to learn, calls a tool as soon as its required parameters have been said, speaks
// about the result or the failure, asks whether there is more, and says goodbye. It
// never calls a tool twice with the same arguments and never asks for the same
// thing more than twice.
//
// It calls end_call with a reason when the customer says goodbye or has nothing
// more ("completed"), is not interested ("not_interested") or does not want to be
// called again ("opt_out"); transfer_call when asked for a person; send_dtmf when a
// menu asks for a key. Arguments that a tool does not have are left out.
//
// Lines of the system prompt steer it. Case does not matter, and a line may begin
// with a dash or a star:
//
//	Greeting: Hi, this is Acme.
//	Closing: Thank you, and goodbye.
//	Ask for: order number
//	Ask for: email (Where may we send the confirmation?)
//	Ask for: newsletter (yes or no: they want the newsletter)
//	Ask for: guests (number of people)
//	When asked about price or cost, say: It costs ten euros.
//	Transfer to: +12025550100
//
// Of a description in brackets, one that ends in a question mark is the question;
// one that begins with "yes or no", "number", "how many" or "how much" says what
// kind of answer it is.
//
// It understands answers and statements alike: "my order number is 4711", "four
// seven one one", "this is Ada", "tomorrow at ten", "yes". What is said last counts.
// An extraction gives one JSON object from the same understanding.
package sandbox
