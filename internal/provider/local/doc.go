// Package local is ears and a voice for English without any key or network:
// Moonshine makes words of what Silero's detector takes for speech, and flite
// speaks. All calls share the same models and a bounded number of cores.
//
// It is only there with the build tag speech, because the models run in
// onnxruntime's C library; install.sh brings the files it needs. The package must
// not know the turn engine's state, the database or where its settings come from.
package local
