// Package sandbox is the provider that needs no key and no network: a speaker, a
// transcriber, a language model and a speech-to-speech model that are deterministic,
// fast and free, and that go through everything a real one does. The speaker writes
// the words into the sound and the transcriber reads them out of the samples that
// arrived, so that what a transcript shows went through the whole media path: a
// word is there because its sound was, and damage shows as damage.
//
// The package must not know telephone lines, the turn engine's state or the
// database: it implements the engine's provider interfaces, and nothing else.
package sandbox
