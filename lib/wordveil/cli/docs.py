"""The command ``wordveil docs``: the documents and configurations that the package carries."""

from __future__ import annotations

import re
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from wordveil.cli.output import print_document, print_table, print_text
from wordveil.cli.scaffold import Call, Result, command
from wordveil.errors import did_you_mean, usage_error

DOCUMENT = ".md"
# A link to another file, or a picture: a terminal can open neither.
_LOCAL_LINK = re.compile(r"!?\[([^\]]*)\]\((?![a-z]+:)[^)]*\)")


@command()
def docs(
    _: Call,
    page: Annotated[
        str | None, Argument(metavar="[PAGE]", help="The page to print. Left out, all pages are listed.")
    ] = None,
    *,
    path: Annotated[bool, Option("--path", help="Print where the page is, or the directory of all pages.")] = False,
) -> Result:
    """List the documents and the configurations to copy, or print one of them.

    Example: `wordveil docs guarantees`
    """
    pages = find_pages()
    if page is None:
        return _list_pages(pages, path=path)
    name = page.removeprefix("docs/").removesuffix(DOCUMENT)  # a user may name a file of the documentation
    if name not in pages:
        problem = f"there is no such page.{did_you_mean(name, pages)} `wordveil docs` lists all pages."
        raise usage_error("PAGE", page, problem)
    file = pages[name]
    text = file.read_text("utf-8")
    show = partial(print_text, f"{file}\n" if path else text)
    if file.suffix == DOCUMENT and not path:
        show = partial(print_document, text, _LOCAL_LINK.sub(r"\1", text))
    return Result({"page": name, "path": str(file), "text": text}, show)


def find_folder() -> Path:
    """Find the directory that has ``docs`` and ``conf``."""
    return Path(str(resources.files("wordveil") / "data"))


def find_pages() -> dict[str, Path]:
    """Find all pages by name: documents first (``choosing``), then configurations (``conf/nightly.yaml``)."""
    folder = find_folder()
    documents = {
        path.relative_to(folder / "docs").with_suffix("").as_posix(): path
        for path in (*(folder / "docs").glob(f"*{DOCUMENT}"), *(folder / "docs").glob(f"*/*{DOCUMENT}"))
    }
    files = (*(folder / "conf").glob("*.*"), *(folder / "conf").glob("*/*"))
    configurations = {path.relative_to(folder).as_posix(): path for path in files if path.is_file()}
    pages = {**documents, **configurations}
    ordered = sorted(pages, key=lambda name: (name in configurations, name.count("/"), name))
    return {name: pages[name] for name in ordered}


def _list_pages(pages: dict[str, Path], *, path: bool) -> Result:
    titles = {name: _title(file) for name, file in pages.items()}
    listed = [{"page": name, "title": title} for name, title in titles.items()]
    note = "`wordveil docs PAGE` prints one."
    show = partial(print_table, "Documents, and configurations to copy", titles, [note])
    if path:
        show = partial(print_text, f"{find_folder()}\n")
    return Result({"directory": str(find_folder()), "pages": listed}, show)


def _title(file: Path) -> str:
    """Return a document's heading, or the first sentence of a configuration's comment."""
    lines = file.read_text("utf-8").splitlines()
    if file.suffix == DOCUMENT:
        return lines[0].removeprefix("# ")
    comment = " ".join(line.lstrip("# ") for line in lines if line.startswith("#"))
    return re.split(r"[.:;] | \(", comment, maxsplit=1)[0]
