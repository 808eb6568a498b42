#!/bin/sh
# Runs the tests on Spark with older versions of Spark and Delta, which lie before those of the environment on Python's
# path. The test of golden rows shows that all versions write the same.
#   make test-spark-versions
#   scripts/test_spark_versions.sh tests/spark/test_versions.py    # some of the tests
set -eu
cd "$(dirname "$0")/.."
python=${VENV:-.venv}/bin/python
[ $# -gt 0 ] || set -- tests/spark

for pair in 3.5.9:3.3.3 4.0.5:4.0.1; do # PySpark's version and Delta's
    packages=$PWD/build/spark-${pair%:*}
    if [ ! -e "$packages/.installed" ]; then
        echo "wordveil: installing PySpark ${pair%:*} and Delta ${pair#*:} into build/ (two minutes, once)" >&2
        "$python" -m pip install --quiet --disable-pip-version-check --no-compile --target "$packages" \
            "pyspark==${pair%:*}" "delta-spark==${pair#*:}"
        touch "$packages/.installed"
    fi
    echo "== Spark ${pair%:*}" >&2
    PYTHONPATH=$packages "$python" scripts/delta_jars.py
    PYTHONPATH=$packages "$python" -m pytest -q -n 2 --dist loadgroup --no-loadscope-reorder "$@"
done
