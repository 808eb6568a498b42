"""The commands ``wordveil audit``, which try to refute the claims of a bundle, a release or any function."""

from __future__ import annotations

import importlib
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option, Typer

from wordveil.cli.options import prepare_session, read_config
from wordveil.cli.output import make_text, print_grid, print_note, print_table, show_status
from wordveil.cli.scaffold import Call, Result, command
from wordveil.errors import BundleError, RefutedError, usage_error

if TYPE_CHECKING:
    from wordveil.audit.findings import Audit

app = Typer(
    help="Try to refute a guarantee: of a bundle, of a release, or of a function of your own. Exit code 3 if one is "
    "refuted, or could not have been.",
    no_args_is_help=True,
    add_completion=False,
)
# The defaults of wordveil.audit.bundle and its canaries, which take a second to load.
ALPHA, DRAWS, COPIES, SEED = 0.01, 4_000, 64, 0
_STYLES = {"refuted": "bold red", "not refuted": "green", "holds": "green", "no power": "dim", "not tested": "dim"}
AlphaOption = Annotated[float, Option("--alpha", metavar="A", help="Family-wise false-alarm rate.")]
DrawsOption = Annotated[
    int, Option("--draws", min=2, metavar="N", help="How many draws of each word choose and test an event.")
]
SeedOption = Annotated[int, Option("--seed", min=0, metavar="S", help="Decides what is drawn.")]


@app.command()
@command(read_config, report=True, html=True)
def bundle(call: Call, draws: DrawsOption = DRAWS, alpha: AlphaOption = ALPHA, seed: SeedOption = SEED) -> Result:
    """Try to refute the guarantee of the configuration's bundle.

    Tests its probabilities, and draws of public words. Keeps the result in the bundle store, where a gate with
    `audited: [bundle]` finds it. Needs no key.

    Example: `wordveil audit bundle --config reviews.yaml`
    """
    from wordveil.assembly.bundles import find_bundle, find_embedding
    from wordveil.audit.bundle import audit_bundle

    check_alpha(alpha)
    store = call.config.bundle_store
    with show_status() as progress:
        progress("verifying the bundle")
        if (built := find_bundle(call.config)) is None:
            raise BundleError(f"bundle_store = {store}: holds no bundle. Run `wordveil build` with this configuration.")
        embedding = find_embedding(call.config, progress)
        audit = audit_bundle(built, embedding, draws=draws, alpha=alpha, seed=seed, progress=progress)
    return _conclude(call, audit, store)


@app.command()
@command(read_config, report=True, html=True)
def release(
    call: Call,
    copies: Annotated[
        int, Option("--copies", min=1, metavar="N", help="How many records have each made document.")
    ] = COPIES,
    alpha: AlphaOption = ALPHA,
    seed: SeedOption = SEED,
) -> Result:
    """Sanitise canaries like the configuration's records, and look for traces that are not declared.

    Reads nothing of the corpus. Keeps the result in the bundle store, where a gate with `audited: [release]` finds
    it.

    Example: `wordveil audit release --config reviews.yaml`
    """
    check_alpha(alpha)
    with show_status() as progress:
        session = prepare_session(call.config, is_short=False)
        from wordveil.spark.evaluate.canaries import audit_release

        audit = audit_release(call.config, session, alpha=alpha, copies=copies, seed=seed, progress=progress)
    return _conclude(call, audit, call.config.bundle_store)


@app.command("callable")
@command(report=True, html=True)
def audit_function(
    call: Call,
    function: Annotated[str, Argument(metavar="MODULE:FUNCTION", help="Takes a word and returns a word.")],
    metric: Annotated[
        str, Option("--metric", metavar="MODULE:DISTANCE", help="Takes two words and returns their distance.")
    ],
    words: Annotated[
        str, Option("--words", metavar="MODULE:WORDS", help="The words to call it with: a list of strings.")
    ],
    epsilon: Annotated[
        float, Option("--epsilon", metavar="X", help="The claimed loss for each unit of the distance, in nats.")
    ],
    draws: DrawsOption = DRAWS,
    pairs: Annotated[int, Option("--pairs", min=1, metavar="N", help="How many pairs of words to test.")] = 24,
    alpha: AlphaOption = ALPHA,
    seed: SeedOption = SEED,
) -> Result:
    """Try to refute that a Python function keeps epsilon times a distance.

    Its modules may lie in the current directory. Naming them runs their code.

    Example: `wordveil audit callable noise:redact --metric noise:distance --words noise:WORDS --epsilon 1`
    """
    from wordveil.audit.callables import audit_callable

    check_alpha(alpha)
    audited = load_object(function, "MODULE:FUNCTION")
    distance, inputs = load_object(metric, "--metric"), load_object(words, "--words")
    with show_status() as progress:
        progress("drawing pairs of words")
        audit = audit_callable(
            audited, list(inputs), distance, epsilon, pairs=pairs, draws=draws, alpha=alpha, seed=seed
        )
    return _conclude(call, audit)


def _conclude(call: Call, audit: Audit, bundle_store: str | None = None) -> Result:
    """Keep an audit, and write its page. The result fails if a claim was refuted, or if none could have been."""
    from wordveil.report.audit import render_audit, verdict_of

    call.tell(audit.to_dict())
    if bundle_store is not None:
        _keep(bundle_store, audit)
    if call.page:
        call.save_page(render_audit(audit), "the page.")
    failure = None
    if audit.refuted:
        names = ", ".join(dict.fromkeys(finding.test for finding in audit.refuted))
        failure = RefutedError(f"audit: {audit.subject} does not keep what it claims: {names}.")
    elif not audit.is_passed:
        failure = RefutedError(
            f"audit: {verdict_of(audit)}: nothing that {audit.subject} claims could have been refuted, so "
            "nothing follows. Use more draws, or read why tests could not run."
        )
    return Result(audit.to_dict(), partial(show, audit), failure)


def check_alpha(alpha: float) -> None:
    """Raise :class:`ConfigError` unless alpha is a probability between 0 and 1."""
    if not 0 < alpha < 1:
        raise usage_error("--alpha", f"{alpha:g}", "must be above 0 and below 1, e.g. 0.01.")


def _keep(bundle_store: str, audit: Audit) -> None:
    """Keep an audit beside the bundles, and print its path."""
    from wordveil.assembly.audits import keep_audit

    path, refuted = keep_audit(bundle_store, audit)
    print_note(f"{path}: the audit, for a gate that requires it.")
    if refuted:
        problem = "a gate with the rule audited fails as long as this file is there. See `wordveil docs auditing`."
        print_note(f"{refuted}: {problem}")


def show(audit: Audit) -> None:
    """Print an audit."""
    from wordveil.report.audit import describe_power, list_limits, show_nats, verdict_of

    print_table(f"Audit of {audit.subject}: {verdict_of(audit)}", audit.facts, list_limits(audit))
    rows = [
        (
            *(finding.test, make_text(finding.verdict, _STYLES[finding.verdict])),
            *(show_nats(finding.claimed), show_nats(finding.observed)),
            " ".join(filter(None, [finding.evidence, describe_power(finding)])),
        )
        for finding in audit.findings
    ]
    print_grid("Findings", rows, ("test", "verdict", "claimed", "seen", "evidence"), has_lines=True)
    for note in audit.notes:
        print_note(note)


def load_object(spec: str, where: str) -> Any:
    """Load the object that an option ``where`` names, such as ``mine:f`` or ``package.module:Class.method``."""
    module, colon, name = spec.partition(":")
    parts = [*module.split("."), *name.split(".")]
    if not colon or not all(part.isidentifier() for part in parts):
        raise usage_error(
            where, spec, "expected module:name.", "For the function `f` of the file `mine.py` write mine:f."
        )
    here = str(Path.cwd())
    sys.path.append(here)  # after all that are installed
    try:
        target: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        hint = "Run the command in the directory of the module, or install it."
        raise usage_error(where, spec, f"there is no module {error.name}.", hint) from error
    except Exception as error:
        raise usage_error(where, spec, f"importing {module} raised {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(here)
    for part in name.split("."):
        if not hasattr(target, part):
            raise usage_error(where, spec, f"{module} has no {name}.")
        target = getattr(target, part)
    return target
