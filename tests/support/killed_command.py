"""The command line, killed after its commit of a given number: ``killed_command.py NUMBER ARGUMENTS...``."""

from __future__ import annotations

import os
import signal
import sys

from wordveil.cli.app import main
from wordveil.spark.platform import delta_table

if __name__ == "__main__":
    left = [int(sys.argv[1])]

    def committed(_: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    delta_table.after_commit = committed
    main(sys.argv[2:])
