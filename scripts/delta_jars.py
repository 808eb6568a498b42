"""Fetches the jars of Delta once, at install time: two processes that fetch them for the first time at once get in each
other's way.
"""

from __future__ import annotations

import subprocess
import sys

SESSION = (
    "from wordveil.config.schema import SparkSection; from wordveil.spark.platform.session import build_session; "
    "build_session(SparkSection(master='local[1]'), delta=True).stop()"
)


def main() -> None:
    """One line on standard output if there is something to fetch, one on standard error if that fails; never an
    error.
    """
    from wordveil.spark.platform.delta import fetched_jars

    if fetched_jars():
        return
    print("wordveil: fetching Delta's jars (a minute, once)")
    done = subprocess.run([sys.executable, "-c", SESSION], capture_output=True, check=False)  # noqa: S603
    if done.returncode != 0 or not fetched_jars():
        print(
            "wordveil: Delta's jars could not be fetched. Delta tables, and the tests of them, need "
            "spark.delta_jars: a directory "
            "that has them, see docs/operations.md; all else works.",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main()
