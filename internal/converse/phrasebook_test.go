package converse

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A book gives what was entered, to whoever asks for the same voice, and no more than it holds.
func TestPhrasebook(t *testing.T) {
	t.Parallel()
	var book Phrasebook
	by := spokenBy{"sandbox", Utterance{Text: "Goodbye.", Voice: "alto", Speed: 1}}
	_, found := book.find(by)
	require.False(t, found)
	book.add(by, Sound{Samples: []int16{1, 2}, Words: []SpokenWord{{Text: "Goodbye."}}})
	sound, found := book.find(by)
	require.True(t, found)
	require.Equal(t, []int16{1, 2}, sound.Samples)
	for _, other := range []spokenBy{{"other", by.Utterance}, {"sandbox", Utterance{Text: "Goodbye.", Voice: "tenor", Speed: 1}}, {"sandbox", Utterance{Text: "Goodbye.", Voice: "alto", Speed: 2}}} {
		_, found = book.find(other)
		require.False(t, found)
	}
	for i := range 2 * mostPhrases {
		book.add(spokenBy{"sandbox", Utterance{Text: string(rune(i))}}, Sound{})
	}
	require.Len(t, book.spoken, mostPhrases)
}
