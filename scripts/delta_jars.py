"""Fetches the jars of Delta once, at install time, and for the tests those of S3A (``--s3``) and Iceberg
(``--iceberg``). Two processes that fetch them for the first time at once get in each other's way.
"""

from __future__ import annotations

import subprocess
import sys

SESSION = (
    "from wordveil.config.schema import SparkSection; from wordveil.spark.platform.session import build_session; "
    "build_session(SparkSection(master='local[1]', {settings}), delta=True).stop()"
)


def main() -> None:
    """Write one line on standard output if there is something to fetch, one on standard error if that fails; never an
    error.
    """
    from wordveil.spark.platform.delta import fetched_jars
    from wordveil.spark.platform.iceberg import ARTIFACT, fetched_iceberg_jars
    from wordveil.spark.platform.session import fetched_s3_jars

    find, what, settings = {
        "": (fetched_jars, "Delta's", ""),
        "--s3": (fetched_s3_jars, "S3A's", "s3=True"),
        "--iceberg": (fetched_iceberg_jars, "Iceberg's", f"options={{'spark.jars.packages': '{ARTIFACT}'}}"),
    }["".join(sys.argv[1:])]
    if find():
        return
    print(f"wordveil: fetching {what} jars (a minute, once)")
    session = SESSION.format(settings=settings)
    done = subprocess.run([sys.executable, "-c", session], capture_output=True, check=False)  # noqa: S603
    if done.returncode != 0 or not find():
        print(
            f"wordveil: {what} jars could not be fetched. What needs them, tests included, takes spark.delta_jars: a "
            "directory that has them, see docs/operations.md; all else works.",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main()
