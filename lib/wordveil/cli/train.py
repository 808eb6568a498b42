"""The command ``wordveil train``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from wordveil.cli.files import writing
from wordveil.cli.options import SetOption
from wordveil.cli.output import is_watched, show_bar, tell
from wordveil.cli.scaffold import Call, Result, command
from wordveil.errors import OutputExistsError

if TYPE_CHECKING:
    from wordveil.config.generators import GeneratorSection
    from wordveil.generators.training.train import Trained

PRIVATE_NOTE = "the weights may reveal the private texts that trained them: keep them as secret as those."
_ENDS = {
    "epochs": "all epochs are done",
    "steps": "all steps are done",
    "minutes": "the time is over",
    "patience": "the validation loss did not fall any more",
}


@command()
def train(
    _: Call,
    config: Annotated[Path, Option("--config", "-c", help="The YAML configuration file of a generator.")],
    overrides: SetOption = None,
    *,
    fresh: Annotated[
        bool, Option("--fresh", help="Start over: delete the checkpoint, and replace the weights.")
    ] = False,
) -> Result:
    """Train a generator on texts, for the mechanism er-ae.

    Run the same command again to continue after an interruption.

    Example: `wordveil train --config generator.yaml`
    """
    from wordveil.assembly.generator_texts import train_generator
    from wordveil.config.generators import load_generator_config
    from wordveil.generators.training.settings import require_packages
    from wordveil.generators.weights import save_weights

    section = load_generator_config(config, overrides or ())
    require_packages()
    output = Path(section.output)
    _prepare(section, output, fresh=fresh)
    with show_training() as (progress, observe):
        trained = train_generator(section, observe, progress)
    with writing("generator.output", str(output)):
        save_weights(output, trained.weights)
        files = _write_figures(section, output)
    notes = [f"{section.directory}: you may delete it, unless training is to continue."]
    if trained.weights.corpus == "private":
        notes.append(PRIVATE_NOTE)
    return Result.of("Generator", _describe(trained, output, files), notes=notes)


def _prepare(section: GeneratorSection, output: Path, *, fresh: bool) -> None:
    """Make room for the files. Raises :class:`OutputExistsError` for weights without a checkpoint."""
    from wordveil.generators.training.checkpoint import CHECKPOINT

    if fresh:
        # The sequences stay: they follow from the texts. Other files in the directory may be the user's own.
        (section.directory / CHECKPOINT).unlink(missing_ok=True)
    if output.exists() and not fresh and not (section.directory / CHECKPOINT).exists():
        raise OutputExistsError(
            f"generator.output = {output}: already exists, and there is no checkpoint to go on from. Name another "
            "file, or replace it with --fresh."
        )
    with writing("generator.output", str(output)):
        output.parent.mkdir(parents=True, exist_ok=True)


def _write_figures(section: GeneratorSection, output: Path) -> dict[str, str]:
    """Write the figures of the training and their picture beside the weights."""
    from wordveil.crypto.private_files import create_file
    from wordveil.generators.training.checkpoint import METRICS, MetricsFile
    from wordveil.report.curves import draw_curves

    figures = MetricsFile(section.directory / METRICS)
    metrics, curves = output.with_suffix(".jsonl"), output.with_suffix(".svg")
    contents = {metrics: figures.path.read_bytes(), curves: draw_curves(figures.read()).encode()}
    for path, content in contents.items():
        with create_file(path, private=section.corpus == "private") as stream:
            stream.write(content)
    return {"metrics": str(metrics), "curves": str(curves)}


def _describe(trained: Trained, output: Path, files: Mapping[str, str]) -> dict[str, Any]:
    progress, weights = trained.progress, trained.weights
    return {
        "path": str(output),
        **files,
        "corpus": weights.corpus,
        "words": weights.shape.size,
        "parameters": sum(array.size for array in weights.arrays.values()),
        "steps": progress.step,
        "epochs": progress.epoch,
        "seconds": round(progress.seconds, 1),
        "validation_loss": progress.best,
        "best_step": progress.best_step if progress.best is not None else progress.step,
        "ended": _ENDS[progress.ended],
        "resumed": trained.resumed,
    }


@contextmanager
def show_training() -> Iterator[tuple[Callable[[str], None], Callable[[Mapping[str, Any], int], None]]]:
    """Show a bar of steps with the losses on a terminal, elsewhere a line for each measurement."""
    with show_bar("checking", has_rest=True) as update:
        shown: dict[str, str] = {}

        def observe(row: Mapping[str, Any], total: int) -> None:
            shown.update({name: f"{row[name]:.3f}" for name in ("loss", "validation_loss") if name in row})
            text = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in shown.items())
            update(f"epoch {row['epoch']}, {text}", done=row["step"], known=total)
            if not is_watched() and "validation_loss" in row:
                figures = f"validation loss {row['validation_loss']:.3f}, accuracy {row['validation_accuracy']:.1%}"
                reward = "with the reward" if row["rewarded"] else "without the reward"
                minutes = f"{row['seconds'] / 60:,.1f} minutes"
                tell(f"step {row['step']:,} of at most {total:,}, {reward}: {figures}; {minutes}")

        yield update, observe
