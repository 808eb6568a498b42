#!/bin/sh
# Writes constraints-oldest.txt: of what users install, the oldest versions that pyproject.toml allows; of everything
# else, the versions of constraints.txt where they fit. For Python 3.11, the oldest one.
#   make constraints-oldest
set -eu
cd "$(dirname "$0")/.."
uv=build/uv
[ -x "$uv/bin/uv" ] || { "${PYTHON:-python3}" -m venv "$uv" && "$uv/bin/python" -m pip install --quiet uv; }

users="spark connect verify annoy languages chinese japanese evaluation er-ae"
compile() { # compile OPTIONS...
    "$uv/bin/uv" pip compile --quiet --no-header --python-version 3.11 pyproject.toml $(printf ' --extra %s' $users) "$@"
}

compile --resolution lowest-direct --annotation-style line | sed -n 's/ *# via .*(pyproject.toml.*//p' >build/oldest.txt
# uv keeps the versions that its output file has.
grep -v '^#' constraints.txt >build/constraints-oldest.txt
compile --no-annotate --extra dev --extra docs --constraint build/oldest.txt --output-file build/constraints-oldest.txt >/dev/null
{
    echo "# The oldest versions that pyproject.toml allows, for \`make test-oldest\` on Python 3.11. \`make constraints-oldest\` writes this file."
    cat build/constraints-oldest.txt
} >constraints-oldest.txt
