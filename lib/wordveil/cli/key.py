"""The command ``wordveil key``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option, Typer

from wordveil.cli.options import SetOption, prepare_session, read_release_config
from wordveil.cli.output import show_status
from wordveil.cli.scaffold import Call, Result, command
from wordveil.crypto.keys import MasterKey, create_key, destroy_key, encode_public_key, load_key, rotate_key
from wordveil.errors import ConfigError, Fault, KeyMaterialError, usage_error

app = Typer(
    help="Create, identify, rotate and destroy keys. Keep keys as secret as the corpus.",
    no_args_is_help=True,
    add_completion=False,
)
_ROTATED = "back up this file as safely as its first version: all later draws need the new epoch"
_DESTROYED = (
    "this does not reach copies, backups, snapshots, or old blocks that the storage kept: destroy those separately"
)


@app.command()
@command()
def new(_: Call, file: Annotated[Path, Argument(help="The file to write. It must not exist.")]) -> Result:
    """Write a random key to FILE, which only its owner can read.

    Example: `wordveil key new reviews.key`
    """
    key = create_key(file)
    return _result({"key": str(file), "fingerprint": key.fingerprint})


@app.command()
@command()
def fingerprint(
    _: Call,
    file: Annotated[str | None, Option("--file", help="The key file.")] = None,
    env: Annotated[str | None, Option("--env", help="The environment variable that holds the key.")] = None,
    release: Annotated[
        str | None,
        Option("--release", metavar="NAME", help="Also print the public key that verifies this release's manifests."),
    ] = None,
) -> Result:
    """Print the fingerprints of a key and of its epochs.

    The 16 digits identify a key without revealing it. Run reports show the same digits.

    Example: `wordveil key fingerprint --file reviews.key --release reviews`
    """
    if (file is None) == (env is None):
        raise KeyMaterialError("Name exactly one of --file and --env.")
    if release is not None:
        from wordveil.config.arguments import parse_release

        parse_release(release, "command line", "--release")
    key = load_key(file, env)
    facts = _facts(key, file or f"${env}")
    if release is not None:
        facts |= {"release": release, "public_key": encode_public_key(key.signing_key(release))}
    return _result(facts)


@app.command()
@command()
def rotate(_: Call, file: Annotated[Path, Argument(help="The key file.")]) -> Result:
    """Append a new epoch to the key in FILE.

    From now on noise comes from the new epoch. Earlier epochs stay in the file.

    Example: `wordveil key rotate reviews.key`
    """
    key = rotate_key(file)
    return _result(_facts(key, str(file)), _ROTATED)


@app.command()
@command()
def destroy(
    _: Call,
    file: Annotated[Path | None, Argument(help="The key file. Name it or --config.")] = None,
    config: Annotated[
        Path | None,
        Option("--config", "-c", help="A release's configuration: freeze the release, then destroy its key.file."),
    ] = None,
    overrides: SetOption = None,
    *,
    yes: Annotated[bool, Option("--yes", help="Confirm that the key is to be destroyed.")] = False,
) -> Result:
    """Overwrite a key once its releases are final.

    Cannot be undone. Name the key's file, or --config to freeze that release first.

    Example: `wordveil key destroy --config reviews.yaml --yes`
    """
    settings = None
    if config is not None and file is None:
        settings = read_release_config(config, overrides)
        if settings.key.file is None:
            problem = "wordveil cannot destroy an environment variable. Destroy the secret where it is stored."
            raise ConfigError(str(config), [Fault("key.env", "", problem)])
        file = Path(settings.key.file)
    elif file is None or config is not None or overrides:
        raise usage_error("key destroy", "", "name exactly one of FILE and --config. --set needs --config.")
    if not yes:
        key = load_key(str(file), None)
        epochs = "its only epoch" if key.epoch == 1 else f"its {key.epoch} epochs"
        problem = (
            f"this would destroy key {key.fingerprint} in {file} with {epochs}. Nobody could then draw new or edited "
            "records of its releases, draw a record again to the same text, or sign manifests. What is published "
            "stays, and its manifests can still be verified."
        )
        raise usage_error("key destroy", "", problem, "Add --yes to confirm.")
    frozen = {}
    if settings is not None:
        from wordveil.spark.release.maintenance import freeze

        key = load_key(str(file), None)
        with show_status() as progress:
            frozen = {
                "release": settings.release,
                "frozen": freeze(settings.home, key, prepare_session(settings, is_short=True), progress=progress),
            }
    tombstone = destroy_key(file)
    facts = {"key": str(file), "fingerprint": tombstone.fingerprint, "destroyed": tombstone.date}
    return _result(facts | frozen, _DESTROYED)


def _facts(key: MasterKey, source: str) -> dict[str, Any]:
    return {
        "key": source,
        "fingerprint": key.fingerprint,
        "epoch": key.epoch,
        "epoch_fingerprints": list(key.epoch_fingerprints),
    }


def _result(facts: Mapping[str, Any], *notes: str) -> Result:
    shown = {name: ", ".join(value) if isinstance(value, list) else value for name, value in facts.items()}
    return Result.of("Key", facts, shown, notes)
