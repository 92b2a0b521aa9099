#!/bin/sh
# Install those of the named Debian packages that are missing. `make test` calls it; with none missing it does nothing.
set -eu

missing=
for package in "$@"; do
    dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
        missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "make test: Debian packages are missing; as root, apt-get install them, then try again:$missing" >&2
    exit 1
fi
echo "make test: installing Debian packages:$missing" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # one word a package
apt-get install -qq -y --no-install-recommends -o DPkg::Lock::Timeout=300 $missing >/dev/null
