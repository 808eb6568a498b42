"""Files of the package that users copy: the DAGs for Airflow, and the application files that they submit."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from wordveil.errors import OutputExistsError, usage_error

JOBS = "wordveil_jobs"
"""The directory of application files, beside the DAGs, which look for it there."""


def write_dags(folder: Path) -> list[Path]:
    """Write the DAG files and the module that they import into ``folder``, the root of a DAG bundle, and the
    application files into ``folder / JOBS``. Returns the files.

    Raises :class:`OutputExistsError` where one of them exists, before anything is written, and :class:`ConfigError`
    where one cannot be written.
    """
    data = resources.files("wordveil") / "data"
    files: list[tuple[Path, Traversable]] = []
    for source, target in ((data / "airflow_dags", folder), (data / "jobs", folder / JOBS)):
        names = sorted(file.name for file in source.iterdir() if file.name.endswith(".py"))
        files += [(target / name, source / name) for name in names]
    existing = [path for path, _ in files if path.exists() or path.is_symlink()]
    if existing:
        raise OutputExistsError(
            f"--airflow = {folder}: already contains {', '.join(path.name for path in existing)}; nothing was written. "
            "Name another directory, or move these files away."
        )
    try:
        for path, source in files:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as stream:
                stream.write(source.read_text("utf-8"))
    except OSError as error:
        raise usage_error("--airflow", str(folder), f"cannot be written: {error.strerror}.") from None
    return [path for path, _ in files]
