#!/bin/sh
# Looks at what `make` builds with, before anything is built: Python with venv, cargo, g++.
# Usage: tools/check_toolchain.sh PYTHON
# The versions wanted stand in Cargo.toml (rust-version) and pyproject.toml (requires-python), and only there.
set -eu
cd "$(dirname "$0")/.."
python=${1:-python3}
rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
oldest=$(sed -n 's/^requires-python = ">=\(.*\)"/\1/p' pyproject.toml)

refuse() {
    printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
    exit 1
}
older() { # whether version $1 is older than version $2
    [ "$1" != "$2" ] && [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]
}
version() { # the first version number that a program tells
    "$@" 2>/dev/null | sed -n 's/^[^0-9]*\([0-9][0-9.]*\).*/\1/p;q'
}

found=$(version "$python" --version)
[ -n "$found" ] || refuse "there is no Python here" "apt-get install python3 python3-venv; PYTHON=... names another than python3"
! older "$found" "$oldest" || refuse "$python is Python $found, and Tierloom takes $oldest or newer" \
    "install a newer one, and name it: make PYTHON=python$oldest"
"$python" -c 'import ensurepip, venv' 2>/dev/null || refuse "$python makes no virtual environments" \
    "apt-get install python3-venv"

found=$(version cargo --version)
[ -n "$found" ] || refuse "there is no cargo here, and Tierloom takes $rust or newer" "https://rustup.rs installs it"
! older "$found" "$rust" || refuse "cargo is version $found, and Tierloom takes $rust or newer" \
    "https://rustup.rs installs it; where rustup is: rustup update stable"

command -v g++ >/dev/null || refuse "there is no g++ here" "apt-get install g++"
