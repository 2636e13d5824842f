#!/bin/sh
# What the tests need beyond Python: a real RTSP server, and a browser that runs without a screen.
# Installs from Debian what is missing where it may; where it may not, says what to install.
set -eu

# Whether a library's file is there, in any of the folders that distributions put them in.
library() {
  for found in /usr/lib/*/"$1" /usr/lib64/"$1" /usr/lib/"$1"; do
    [ ! -e "$found" ] || return 0
  done
  return 1
}

missing=""
needs() { # a package, and the test that shows it
  package=$1
  shift
  "$@" || missing="$missing $package"
}
needs chromium command -v chromium >/dev/null
needs python3-gi [ -d /usr/lib/python3/dist-packages/gi ]
needs gir1.2-gst-rtsp-server-1.0 library girepository-1.0/GstRtspServer-1.0.typelib
needs gstreamer1.0-plugins-base library gstreamer-1.0/libgstapp.so
needs gstreamer1.0-plugins-good library gstreamer-1.0/libgstrtp.so
[ -n "$missing" ] || exit 0

as_root=""
if [ "$(id -u)" != 0 ]; then
  as_root="sudo -n"
fi
if ! command -v apt-get >/dev/null || ! $as_root true 2>/dev/null; then
  echo "the tests need more of the system; as root: apt-get install$missing" >&2
  exit 1
fi
echo "installing$missing" >&2
apt() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
    -o Dpkg::Use-Pty=0 "$@" >/dev/null
}
apt update || echo "apt-get update failed; trying with the lists there are" >&2
# shellcheck disable=SC2086 # a list of words
apt install -y --no-install-recommends $missing || {
  echo "could not be installed; as root: apt-get install$missing" >&2
  exit 1
}
