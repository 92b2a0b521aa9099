#!/bin/sh
# Make .venv with the newest Python from 3.11 on. `make setup` calls it, on a machine that may have nothing but Python.
set -eu
cd "$(dirname "$0")/.."

# On PATH there may be names without a Python behind them (version managers), so each candidate is asked.
usable() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

for python in ${PYTHON:-python3.13 python3.12 python3.11 python3}; do
    usable "$python" && break
    python=
done
if [ -z "$python" ]; then
    echo "make setup: no Python 3.11 or newer on PATH: install one (Debian 12: apt-get install python3 python3-venv)," \
        "or name it: make setup PYTHON=/path/to/python3" >&2
    exit 1
fi

# Debian keeps the part of venv that installs pip in a package of its own.
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "make setup: $python can't make a virtual environment: as root, apt-get install $package, then try again" >&2
        exit 1
    fi
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$package"
fi

rm -rf .venv # a half-made one, or one whose Python is gone
"$python" -m venv .venv
