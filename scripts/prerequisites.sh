#!/bin/sh
# Checks what `make` cannot do without: Python 3.11+ with its venv module, and Java 17+. Installs what is missing with
# apt-get where that is allowed (as root), and otherwise says what to do. Annoy has no wheels: the compiler and the headers that
# it takes are installed too where that is allowed; without them make leaves Annoy out.
set -eu

python=${PYTHON:-python3}

install() {
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "wordveil: installing $1 with apt-get"
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$1" >/dev/null
    else
        echo "wordveil: $2 is missing. On Debian: sudo apt-get install $1" >&2
        exit 1
    fi
}

java_version() {
    java=java
    [ -n "${JAVA_HOME:-}" ] && java="$JAVA_HOME/bin/java"
    "$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "wordveil: Python 3.11 or newer is missing ($python is not one). Say which with: make PYTHON=/path/to/python3.11" >&2
    exit 1
fi
package=$(basename "$(readlink -f "$(command -v "$python")")")
"$python" -c 'import ensurepip, venv' 2>/dev/null || install "$package-venv" "Python's venv module"
"$python" -c 'import ensurepip, venv' 2>/dev/null || { echo "wordveil: $python still has no venv module; install it for that Python." >&2; exit 1; }

if [ "$(id -u)" = 0 ]; then
    "$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
        install "$package-dev" "Python's headers" || true
    command -v "${CXX:-g++}" >/dev/null 2>&1 || install g++ "a C++ compiler" || true
fi

version=$(java_version || true)
[ -n "$version" ] || { install default-jre-headless "Java 17 or newer"; version=$(java_version || true); }
if [ -z "$version" ] || [ "$version" -lt 17 ]; then
    echo "wordveil: Java 17 or newer is needed, found '${version:-none}'. Install default-jre-headless, or set JAVA_HOME to a newer one." >&2
    exit 1
fi
