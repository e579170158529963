#!/bin/sh
# Installs the Debian packages that the tests run against, when root; otherwise says
# which are missing. A test whose peer cannot be had skips loudly, or fails with CI=true.
set -eu

packages="gcc libc6-dev postgresql flite espeak-ng sip-tester baresip-core"
missing=""
for package in $packages; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1 || [ "$(id -u)" -ne 0 ]; then
  echo "NOT INSTALLED:$missing. Install them as root, or their tests will be skipped." >&2
  exit 0
fi
echo "installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >/dev/null || echo "apt-get update failed; trying with the lists there are" >&2
# shellcheck disable=SC2086 # the list is meant to be split
apt-get install -y -q --no-install-recommends $missing >/dev/null || echo "COULD NOT INSTALL:$missing" >&2
