#!/bin/sh
# Runs the README's commands as on a new machine, with each Python from 3.11 on that it finds: a new clone of HEAD, an
# empty home, a new environment. Prints seconds and megabytes of each command, and fails if one fails.
#   scripts/fresh.sh [TARGET...]     make's targets; by default: quickstart test
#   PYTHONS="/usr/bin/python3 ..."   these interpreters alone
#   COLD=1                           with an empty package cache too
#   KEEP=DIR                         keeps clones and logs in DIR
# Java takes the user's home from the account: Delta's jars in ~/.ivy2.5.2 are used if they are there.
set -u
cd "$(dirname "$0")/.." || exit 2
project=$PWD
targets=${*:-quickstart test}
work=${KEEP:-$(mktemp -d)}
mkdir -p "$work" || exit 2
[ -n "${KEEP:-}" ] || trap 'rm -rf "$work"' EXIT
cache=${PIP_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/pip}

version() { "$1" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3]) if sys.version_info >= (3, 11) else sys.exit(1)' 2>/dev/null; }

# The machine's own first; one interpreter for each version.
find_pythons() {
    seen=""
    for candidate in ${PYTHONS:-/usr/bin/python3 python3.11 python3.12 python3.13 "$HOME"/.pyenv/versions/3.*/bin/python3}; do
        python=$(command -v "$candidate") && number=$(version "$python") || continue
        case " $seen " in *" $number "*) continue ;; esac
        seen="$seen $number"
        echo "$python"
    done
}

failed=""
summary=""
for python in $(find_pythons); do
    number=$(version "$python")
    place="$work/$number"
    rm -rf "$place"
    mkdir -p "$place/home"
    git clone --quiet "$project" "$place/wordveil" || exit 2
    for target in $targets; do
        echo "== Python $number: make $target" >&2
        started=$(date +%s)
        if (
            cd "$place/wordveil" || exit 1
            unset VIRTUAL_ENV PYTHONPATH XDG_CACHE_HOME
            [ -n "${COLD:-}" ] && cache="$place/home/.cache/pip"
            HOME="$place/home" PIP_CACHE_DIR="$cache" make --no-print-directory PYTHON="$python" "$target"
        ) >"$place/$target.log" 2>&1; then result=passed; else
            result=FAILED failed=1
            tail -n 40 "$place/$target.log" >&2
        fi
        seconds=$(($(date +%s) - started))
        size=$(du -sm "$place/wordveil/.venv" 2>/dev/null | cut -f 1)
        summary="$summary
  Python $number, make $target: $result, $seconds s, .venv ${size:-0} MB"
    done
    [ -n "${KEEP:-}" ] || rm -rf "$place"
done
echo "Fresh clones of $(git rev-parse --short HEAD):${summary:- no Python from 3.11 on was found}"
[ -n "$summary" ] && [ -z "$failed" ]
