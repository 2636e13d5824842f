#!/bin/sh
# What the tests need beyond Python: a real RTSP server, a browser that runs without a screen, a
# broker of MQTT, a server of PostgreSQL, and what checks a unit of systemd.
# Root gets what is missing from Debian. For anybody else it is named, and the tests skip what needs
# it; with CI=true a package that is missing is an error. With --missing, only lists them.
set -eu

# Whether one of these files is there.
any_of() {
  for found in "$@"; do
    [ ! -e "$found" ] || return 0
  done
  return 1
}

# Whether a library's file is there, in any of the folders that distributions put them in.
library() {
  any_of /usr/lib/*/"$1" /usr/lib64/"$1" /usr/lib/"$1"
}

# Whole, or the smaller and faster shell.
browser() {
  command -v chromium-headless-shell || command -v chromium
}

needs() { # a package, and the test that shows it
  package=$1
  shift
  "$@" >/dev/null || missing="${missing:+$missing }$package"
}

look() {
  missing=""
  needs chromium-headless-shell browser
  needs libatomic1 library libatomic.so.1 # of playwright's own Node.js
  needs python3-gi [ -d /usr/lib/python3/dist-packages/gi ]
  needs gir1.2-gst-rtsp-server-1.0 library girepository-1.0/GstRtspServer-1.0.typelib
  needs gstreamer1.0-plugins-base library gstreamer-1.0/libgstapp.so
  needs gstreamer1.0-plugins-good library gstreamer-1.0/libgstrtp.so
  needs mosquitto [ -x /usr/sbin/mosquitto ]
  needs systemd command -v systemd-analyze
  needs postgresql any_of /usr/lib/postgresql/*/bin/postgres
}

# Quiet, unless it fails.
apt() {
  told=$(DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 \
    -o Dpkg::Use-Pty=0 "$@" 2>&1) || echo "$told" >&2
}

look
if [ "${1:-}" = --missing ]; then
  echo "$missing"
  exit
fi
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing system packages for the tests: $missing" >&2
  apt update
  # shellcheck disable=SC2086 # a list of words
  apt install -y --no-install-recommends $missing
  look
  [ -n "$missing" ] || exit 0
fi

command="apt-get install --no-install-recommends $missing"
if [ "${CI:-}" = true ]; then
  echo "CI=true, and system packages are missing; as root: $command" >&2
  exit 1
fi
echo "tests that need missing system packages are skipped; to run them too, as root: $command" >&2
