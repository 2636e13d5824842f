#!/bin/sh
# Try the commands of the README in a Debian that has nothing but make and python3-venv, as a slim
# container has: as an ordinary user and as root. Needs root, and takes debootstrap from Debian.
# bare.sh [TARGET...]: which targets of make to try; by default demo and test. The target container
# does what deploy/Containerfile says there, as no container tool works in a container.
set -eu
[ "$(id -u)" = 0 ] || { echo "bare.sh makes a root folder: run it as root" >&2; exit 1; }
command -v debootstrap >/dev/null || {
  apt-get -qq update
  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends debootstrap >/dev/null
}
targets=${*:-demo test}
root=$(mktemp -d "${TMPDIR:-/var/tmp}/habitus-bare.XXXXXX")
chmod 755 "$root"
trap 'rm -rf "$root"' EXIT
trap 'exit 130' INT TERM

# The same release from the same mirror as this machine's.
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $release" | head -n 1)
echo "a bare $release" >&2
debootstrap --variant=minbase --include=make,python3-venv,ca-certificates \
  "$release" "$root" "${mirror:-http://deb.debian.org/debian}" >"$root.log" 2>&1 ||
  { tail -n 20 "$root.log" >&2; exit 1; }
rm -f "$root.log"

# How this machine reaches the registries of packages.
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
  [ ! -e "$file" ] || cp -L "$file" "$root$file"
done
cp -rL /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
pip_variables=$(env | grep '^PIP_' || true)
chroot "$root" useradd --create-home person

# Run a target of make in a clone of its own: WHO TARGET. What hangs is ended, and fails.
try() {
  case $1 in root) home=/root ;; *) home=/home/$1 ;; esac
  if [ ! -d "$root$home/habitus" ]; then
    git clone --quiet . "$root$home/habitus"
    chroot "$root" chown -R "$1:" "$home/habitus"
  fi
  echo "make $2, as $1" >&2
  start=$(date +%s)
  # shellcheck disable=SC2086 # variables are words
  unshare --mount --pid --fork sh -euc '
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    shift
    exec timeout --kill-after=10 5400 chroot "$@"' bare \
    "$root" --userspec="$1" "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME="$home" \
    LANG=C.UTF-8 ${CI:+CI="$CI"} $pip_variables make -C "$home/habitus" "$2"
  echo "make $2, as $1: $(($(date +%s) - start)) s" >&2
}

case " $targets " in *" container "*)
  targets=$(echo " $targets " | sed 's/ container / /')
  unshare --mount --pid --fork sh -euc '
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    exec timeout --kill-after=10 1800 python3 scripts/container_steps.py deploy/Containerfile "$1"' \
    bare "$root" ;;
esac

for who in person root; do
  for target in $targets; do
    try "$who" "$target"
  done
done
