"""The command ``wordveil key``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wordveil.errors import KeyMaterialError
from wordveil.keys import MasterKey, load_key, new_key
from wordveil.printing import print_json, print_table

keys = typer.Typer(help="Make and identify keys. Keep them as secret as the corpus.", no_args_is_help=True)
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]


@keys.command()
def new(
    file: Annotated[Path, typer.Argument(help="The file to write; it must not exist.")], *, as_json: JsonOption = False
) -> None:
    """Write a random key to FILE, readable by its owner alone."""
    _show(new_key(file), str(file), as_json=as_json)


@keys.command()
def fingerprint(
    file: Annotated[str | None, typer.Option("--file", help="The key's file.")] = None,
    env: Annotated[str | None, typer.Option("--env", help="The environment variable that holds it.")] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Print 16 digits that identify a key and do not tell it, as run reports have them."""
    if (file is None) == (env is None):
        raise KeyMaterialError("Name exactly one of --file and --env.")
    _show(load_key(file, env), file or f"${env}", as_json=as_json)


def _show(key: MasterKey, place: str, *, as_json: bool) -> None:
    facts = {"key": place, "fingerprint": key.fingerprint}
    if as_json:
        print_json(facts)
    else:
        print_table("Key", facts)
