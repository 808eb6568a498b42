#!/bin/sh
# Packs wordveil and what its workers need, except Spark, into an archive that spark-submit unpacks beside each executor.
# The executors need the same Python version at the same path as here: an environment carries packages, not the interpreter.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/wordveil-environment.tar.gz}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/environment"
"$work/environment/bin/python" -m pip install --quiet --disable-pip-version-check -c constraints.txt ".[${EXTRAS-}]" pandas venv-pack
mkdir -p "$(dirname "$out")"
rm -f "$out"
"$work/environment/bin/venv-pack" --quiet --prefix "$work/environment" --compress-level 1 --output "$out"
echo "$out: $(du -h "$out" | cut -f1)"
