//go:build race

package converse

// underRace: the race detector makes everything ten times slower, so that the
// promises are kept with fewer repetitions; their full figures are those without it.
const underRace = true
