//go:build !speech

package main

import (
	"parley/internal/converse"
	"parley/internal/simulator"
)

// speechFlags are empty in a build without the speech models.
type speechFlags struct{}

type speech struct{}

func (speechFlags) load() (speech, error) { return speech{}, nil }

func (speech) equip(*simulator.Carrier, *converse.Config) {}

func (speech) close() {}
