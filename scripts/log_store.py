"""Compiles the log store for S3 into the jar that comes with the package, so that its users need no compiler.

The same compiler makes the same bytes: times are fixed. The source goes into the jar too, so that a test without a
compiler sees whether the two belong together.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

import pyspark

from wordveil.spark.platform.delta import JAR, SOURCE, fetched_jars

RELEASE = "17"


def build(jar: Path) -> None:
    """Write the jar. Raises :class:`FileNotFoundError` without a compiler, or without the jars that it needs."""
    compiler, storage = shutil.which("javac"), fetched_jars()
    if compiler is None or not storage:
        missing = "javac (a JDK)" if compiler is None else "Delta's jars (make test fetches them)"
        raise FileNotFoundError(f"the log store cannot be compiled: {missing} is missing.")
    needed = [*(Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar"), *storage]
    with tempfile.TemporaryDirectory() as directory:
        options = ["--release", RELEASE, "-proc:none", "-g:none", "-Xlint:all,-path,-classfile", "-Werror"]
        command = [compiler, *options, "-cp", ":".join(map(str, needed)), "-d", directory, str(SOURCE)]
        subprocess.run(command, check=True)  # noqa: S603
        classes = sorted(Path(directory).rglob("*.class"))
        contents = {str(file.relative_to(directory)): file.read_bytes() for file in classes}
    with zipfile.ZipFile(jar, "w") as archive:
        for name, content in {**contents, SOURCE.name: SOURCE.read_bytes()}.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    build(JAR)
