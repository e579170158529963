//go:build !race

package converse

const underRace = false
