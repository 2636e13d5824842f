#!/bin/sh
# Make a virtual environment: PYTHON FOLDER. Debian keeps part of what that takes in python3-venv:
# root gets it installed, anybody else is told how.
set -eu
python=$1
folder=$2

fail() {
  echo "$1" >&2
  exit 1
}

# Quiet, unless it fails.
apt() {
  told=$(DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
    -o Dpkg::Use-Pty=0 "$@" 2>&1) || echo "$told" >&2
}

complete() {
  "$python" -c 'import ensurepip, venv' 2>/dev/null
}

if command -v "$python" >/dev/null; then
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "habitus needs Python 3.11 or newer, $python is $("$python" -V 2>&1); set PYTHON=python3.x"
fi
if ! complete; then
  package="$(basename "$python")-venv"
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing $package" >&2
    apt update
    apt install -y --no-install-recommends "$package"
  fi
  complete || fail "$python cannot make a virtual environment; as root: apt-get install $package"
fi
exec "$python" -m venv "$folder"
