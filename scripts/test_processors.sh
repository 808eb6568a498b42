#!/bin/sh
# Runs the tests without Java as on three kinds of processors. OpenBLAS, NumPy, Numba and Arrow choose code by the
# processor, and round in other ways with it: here they are told what to choose. Golden outputs and the rows of made
# nights are among the tests: a bundle draws the same on every machine. The C library is left alone: without FMA, which
# processors have since 2013, its exp gives other tables (docs/adr/0011-tables.md).
#   make test-processors
set -eu
cd "$(dirname "$0")/.."
run() { # run NAME VARIABLE=VALUE...
    echo "== $1" >&2
    shift
    env "$@" "${MAKE:-make}" --no-print-directory test-without-java
}
has() { grep -qw "$1" /proc/cpuinfo; }

run "no AVX2" OPENBLAS_CORETYPE=Prescott NUMBA_CPU_NAME=generic ARROW_USER_SIMD_LEVEL=NONE \
    NPY_DISABLE_CPU_FEATURES="X86_V3 X86_V4 AVX512_ICL AVX512_SPR"
if has avx2; then
    run "AVX2" OPENBLAS_CORETYPE=Haswell NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES=+avx2,+fma \
        ARROW_USER_SIMD_LEVEL=AVX2 NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR"
else
    echo "== AVX2: left out, since this processor has none" >&2
fi
if has avx512f; then
    run "AVX-512" OPENBLAS_CORETYPE=SkylakeX
else
    echo "== AVX-512: left out, since this processor has none" >&2
fi
