#!/bin/sh
# Runs what takes long by nature, one piece after another: each piece is a target of the Makefile and can be started
# alone. A piece that this machine lacks the means for is skipped, and the reason is printed. A piece that fails does not
# stop the others; the exit code is 1 if one failed. Over four hours on two cores.
#   make test-long
set -u
cd "$(dirname "$0")/.."
failed=""
summary=""
note() { summary="$summary
  $1"; }

run() { # run PIECE
    echo "== make $1" >&2
    started=$(date +%s)
    if ${MAKE:-make} --no-print-directory "$1"; then result=passed; else result=FAILED failed="$failed $1"; fi
    note "$1: $result, $(($(date +%s) - started)) s"
}
skip() { # skip PIECE REASON
    echo "== make $1: skipped. $2" >&2
    note "$1: skipped. $2"
}
has() { command -v "$1" >/dev/null 2>&1; }
free_kb() { df -Pk "$1" | awk 'NR == 2 { print $4 }'; }
port_is_taken() { # port_is_taken PORT
    .venv/bin/python -c 'import socket, sys; sys.exit(socket.socket().connect_ex(("127.0.0.1", int(sys.argv[1]))) != 0)' "$1"
}
can_download() { # whether the package index that pip is configured for answers
    .venv/bin/python -m pip --disable-pip-version-check --retries 1 --timeout 20 index versions pip >/dev/null 2>&1
}

run test-long-suite
run test-research
run test-processors
if can_download; then
    run test-spark-versions
    run test-pythons
else
    skip test-spark-versions "pip's package index does not answer."
    skip test-pythons "pip's package index does not answer."
fi
run chaos

# The executors' packages come as an archive, which pip fills once.
environment=build/wordveil-environment.tar.gz
packed() { [ -f "$environment" ] || can_download; }
no_packages="$environment does not exist, and pip's package index does not answer: the executors' packages cannot be installed."

if ! has openssl; then
    skip standalone "openssl is missing: it makes the cluster's secret. On Debian: apt-get install openssl"
elif port_is_taken 7077; then
    skip standalone "port 7077 is in use. Choose another one with: PORT=7078 make standalone"
elif ! packed; then
    skip standalone "$no_packages"
else
    run standalone
fi

memory_kb=$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo 2>/dev/null || echo 0)
if port_is_taken 8020; then
    skip yarn "port 8020 is in use: HDFS needs it."
elif [ "${memory_kb:-0}" -lt 6000000 ]; then
    skip yarn "it needs 6 GB of free memory, and there are $((${memory_kb:-0} / 1000000)) GB."
elif ! packed; then
    skip yarn "$no_packages"
elif ! ls build/hadoop/jars/org.apache.hadoop_hadoop-client-minicluster-*.jar >/dev/null 2>&1 && ! can_download; then
    skip yarn "Hadoop's servers are not in build/hadoop, and this machine cannot download them."
else
    run yarn
fi

if [ "$(free_kb "${TMPDIR:-/tmp}")" -lt 14000000 ]; then
    skip bench-billion "it needs 14 GB of disk in ${TMPDIR:-/tmp}. Choose another place with TMPDIR."
else
    run bench-billion
fi

echo "make test-long:$summary"
[ -z "$failed" ]
