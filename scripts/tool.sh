#!/bin/sh
# Runs a tool of the environment, active or not: git starts hooks without it.
#   tool.sh COMMAND...     from $VENV, by default .venv
PATH="${VENV:-.venv}/bin:$PATH" exec "$@"
