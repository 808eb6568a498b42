#!/bin/sh
# Checks what pip cannot install, installs it with apt-get where that is allowed (as root), and else says what to do.
#   prerequisites.sh python     Python 3.11 or newer ($PYTHON, by default python3) with its venv module
#   prerequisites.sh compiler   g++ and Python's headers, which only Annoy needs: without them nothing fails
#   prerequisites.sh java       Java 17 to 22
set -eu

python=${PYTHON:-python3}
may_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

install() { # install PACKAGE WHAT
    if may_install; then
        echo "wordveil: installing $1 with apt-get"
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$1" >/dev/null
    else
        echo "wordveil: $2 is missing. On Debian: sudo apt-get install $1" >&2
        return 1
    fi
}

# As Debian calls the package of this Python: python3.11.
package() { basename "$(readlink -f "$(command -v "$python")")"; }

check_python() {
    if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        echo "wordveil: Python 3.11 or newer is missing ($python is not one). Say which with: make PYTHON=/path/to/python3.11" >&2
        exit 1
    fi
    "$python" -c 'import ensurepip, venv' 2>/dev/null || install "$(package)-venv" "Python's venv module"
    "$python" -c 'import ensurepip, venv' 2>/dev/null || { echo "wordveil: $python still has no venv module; install it for that Python." >&2; exit 1; }
}

check_compiler() {
    may_install || return 0
    "$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
        install "$(package)-dev" "Python's headers" || true
    command -v "${CXX:-g++}" >/dev/null 2>&1 || install g++ "a C++ compiler" || true
}

java_version() {
    java=java
    [ -n "${JAVA_HOME:-}" ] && java="$JAVA_HOME/bin/java"
    "$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

check_java() {
    version=$(java_version || true)
    [ -n "$version" ] || { install default-jre-headless "Java 17 to 22"; version=$(java_version || true); }
    if [ -z "$version" ] || [ "$version" -lt 17 ] || [ "$version" -gt 22 ]; then
        echo "wordveil: Spark needs Java 17 to 22, found '${version:-none}'. Install default-jre-headless (Debian 12 and 13), or set JAVA_HOME." >&2
        exit 1
    fi
}

"check_$1"
