"""XLA optimises little here: what is trained is small, and compiling it takes longer than its steps."""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")
