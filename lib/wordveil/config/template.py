"""Draft of a configuration from a table's schema: columns guessed by name and type, the rest left for the user to
set.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from wordveil.config.guess import Column, Guess
from wordveil.config.schema import TextSection
from wordveil.errors import OutputExistsError, usage_error
from wordveil.privacy.relations import column_exposure
from wordveil.text.language import IDENTIFIER, find_version
from wordveil.text.policy import TextPolicy
from wordveil.text.types.classes import newest_version

SLICE = "ds"
"""The parameter of ``input.where`` by which the nightly DAG names a slice."""
_TEXT = TextSection.model_validate(
    {"profile": "readable", "repeat": "same", "stop_word_capitals": "replace", "articles": "agree"}
)
_PASSAGES_TEXT = TextSection.model_validate({"profile": "passages"})
"""The policies that are drafted."""

_SUFFIX = re.compile(r"(?<=.)\.(parquet|orc|jsonl?|ndjson|csv|tsv|txt)(\.(gz|bz2|zst|xz|lz4|snappy))?$", re.IGNORECASE)


def table_name(path: str) -> str:
    """Return the last part of a table's path without its suffix, such as ``.parquet`` or ``.csv.gz``."""
    return _SUFFIX.sub("", path.rstrip("/").rsplit("/", maxsplit=1)[-1])


def is_local_delta(path: str) -> bool:
    """Return whether there is a Delta table at a path of this machine; only Spark can read other file systems."""
    return (Path(path.removeprefix("file:")) / "_delta_log").is_dir()


def draft_config(
    path: str,
    columns: Sequence[Column],
    guess: Guess,
    kind: str = "parquet",
    directory: Path | None = None,
    *,
    is_release: bool = False,
    has_feed: bool = False,
    is_whole: bool = False,
    options: str = "",
) -> str:
    """Write the configuration of a table of format ``kind`` as commented YAML, for a file in ``directory``.

    It is one of a job, or of an incremental release (``is_release``), which needs a Delta table. ``has_feed``: whether
    the table's change data feed is on. ``is_whole``: whether whole texts are drawn, and not words. ``options``: those
    of the format, as YAML.

    It loads once the settings of :meth:`Guess.to_fill` are filled in.
    """
    # Each way has outputs of its own, so that both can be tried on one table.
    way = "-passages" if is_whole else ""
    release = (re.sub(r"[^A-Za-z0-9._-]+", "-", table_name(path)).strip("-._")[:119] or "corpus") + way
    types = {column.name: column.type for column in columns}
    left = [
        f"  #   {_scalar(column)} {types[column]}" for column in guess.not_kept if column not in (guess.id, guess.text)
    ]
    chosen = _PASSAGES_TEXT if is_whole else _TEXT
    parts = _release_parts(path, guess, chosen, has_feed=has_feed) if is_release else _job_parts(path, kind, chosen)
    policy = _PASSAGES_POLICY if is_whole else _WORDS_POLICY
    return _TEMPLATE.format(
        mechanism=_PASSAGES if is_whole else _WORDS,
        policy=policy.format(
            # Without a number it is 1, the version of configurations that were written before there were several.
            classes=f"  types_version: {newest}   # the list of classes\n" if (newest := newest_version()) > 1 else "",
            languages=_OTHER_LANGUAGE if find_version(IDENTIFIER.names[0]) else _OTHER_LANGUAGE_LATER,
        ),
        release=_scalar(release),
        path=_scalar(path),
        format=kind,
        source=_READ if kind == "json" else _NOT_READ,
        options=(f"  options: {{{options}}}\n" if options else "") + _FORMAT_NOTES.get(kind, ""),
        key=_scalar(str((directory or Path()) / "wordveil.key")),
        id=_named(guess.id, guess.id_candidates, "unique; published unchanged, so it must hold nothing private"),
        text=_named(guess.text, guess.text_candidates, "what is sanitised; it never reaches the output"),
        author=f"author: {_scalar(guess.author)}"
        if guess.author
        else "# author: the column that says who wrote a record, if any",
        keep=", ".join(map(_scalar, guess.keep)),
        partitions="These are partition columns, guessed to be public: check."
        if guess.keep
        else "None was guessed to be public.",
        left="\n".join(left) or "  #   none",
        partition_by=", ".join(map(_scalar, guess.keep)),
        **parts,
    )


def _beside(path: str, ending: str) -> str:
    above, slash, name = path.rstrip("/").removesuffix(".parquet").rpartition("/")
    return _scalar(f"{above}{slash}{name.replace(':', '-')}-{ending}")


def _job_parts(path: str, kind: str, text: TextSection) -> dict[str, str]:
    """Collect the parts of a draft of one job that a draft of a release lacks."""
    symbols = _SYMBOLS if TextPolicy(**text.policy_settings()).draws_words else ""
    return {
        "steps": _JOB_STEPS,
        "changes": _SUGGESTION if kind == "delta" else "",
        "gated": "",
        "output": f"  path: {_beside(path, 'sanitised' if symbols else 'passages')}\n{_PUBLIC_ONLY}{symbols}",
        "rest": "",
    }


def _release_parts(path: str, guess: Guess, text: TextSection, *, has_feed: bool) -> dict[str, str]:
    """Collect the parts of a draft of a release that a draft of one job lacks."""
    policy = TextPolicy(**text.policy_settings())
    way = "" if policy.draws_words else "passages-"
    output = (
        f"  path: {_beside(path, f'{way}release')}   # draws, journal, manifests: internal, as secret as the ids\n"
        f"  format: delta\n  public: {_beside(path, f'{way}public')}   # what readers may see, with a signed manifest\n"
    )
    above, slash, _ = path.rstrip("/").rpartition("/")
    if policy.draws_words:
        output += _SYMBOLS
    kept = ["kept_changed", *map(column_exposure, guess.keep)] if guess.keep else []
    shown = [*policy.exposes, "edited", "withdrawn", *kept]
    where = ""
    if guess.day is not None:
        column = guess.day if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", guess.day) else f"`{guess.day}`"
        where = _SLICED.format(where=_scalar(f"{column} = :{SLICE}"))
    return {
        "steps": _RELEASE_STEPS,
        "gated": ", and name each in gate.exposes",
        "changes": (_FEED if has_feed else _SCAN) + _WHOLE + where,
        "output": output,
        "rest": _RELEASE_REST.format(
            ledger=_scalar(f"{above}{slash}wordveil-ledger"),
            relation=policy.relation,
            costs=_COSTS[policy.draws_words],
            exposes=", ".join(map(_scalar, shown)),
            author=_AUTHOR_LIMIT.format(costs=_RECORDS_COST[policy.draws_words]) if guess.author else _NO_AUTHOR_LIMIT,
        ),
    }


def _named(name: str | None, candidates: Sequence[str], meaning: str) -> str:
    if name is not None:
        return f"{_scalar(name)}   # guessed by its name: check. {meaning[0].upper()}{meaning[1:]}"
    choice = f"one of {', '.join(map(_scalar, candidates))}?" if candidates else "no column's name shows it."
    return f"null   # FILL IN: {choice} {meaning[0].upper()}{meaning[1:]}"


def _scalar(value: str) -> str:
    """Write ``value`` as one line of YAML that reads back as the same string, in a comment too."""
    if re.fullmatch(r"[A-Za-z_/.][A-Za-z0-9_./-]*", value) and yaml.safe_load(value) == value:
        return value
    quoted: str = yaml.safe_dump(value, default_style='"', width=10**9, allow_unicode=False)
    return quoted.strip()


def write_draft(file: Path, content: str) -> None:
    """Write a new file.

    Raises :class:`OutputExistsError` where the file exists, :class:`ConfigError` where it cannot be written.
    """
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(content)
    except FileExistsError:
        refuse_existing(file)
    except OSError as error:
        raise usage_error("--output", str(file), f"cannot be written: {error.strerror}.") from None


def refuse_existing(file: Path) -> None:
    """Raise :class:`OutputExistsError` if there is such a file: it may hold someone's work."""
    if file.exists() or file.is_symlink():
        raise OutputExistsError(
            f"--output = {file}: already exists and was not changed. Choose another name, or move the file."
        )


def draft_facts(file: Path, path: str, guess: Guess, *, is_release: bool = False) -> dict[str, Any]:
    """Return the guess as plain values."""
    names = ("id", "id_candidates", "text", "text_candidates", "author", "keep", "not_kept")
    guessed = {name: list(value) if isinstance(value := getattr(guess, name), tuple) else value for name in names}
    sliced = {"slice_candidates": [guess.day] if guess.day else []} if is_release else {}
    return {
        "output": str(file),
        "input": path,
        "release": is_release,
        **guessed,
        **sliced,
        "to_fill": guess.to_fill(is_release=is_release),
    }


_FORMAT_NOTES = {
    "csv": """\
  # Fields as in RFC 4180: a quote inside quotes is written twice. Of files that Spark wrote: options: {escape: "\\\\"}
""",
    "json": """\
  # Each run reads the files once more for these types, unless columns names them, such as: id BIGINT, body STRING
""",
}
_OTHER_LANGUAGE = "other_language: quarantine   # refuses records of other languages; mask hides all their words"
_OTHER_LANGUAGE_LATER = (
    f"# other_language: quarantine   # refuses records of other languages: pip install 'wordveil[{IDENTIFIER.extra}]'"
)
_JOB_STEPS = """\
# Then run `wordveil build`, `wordveil plan --sample 1000`, `wordveil sanitise`.
"""
_SUGGESTION = """\
  # A Delta table that grows can be sanitised night by night: `wordveil init --release` drafts an incremental release.
"""
_NOT_READ = "the table's schema by `wordveil init`; no row was read"
_READ = "the files by `wordveil init`, which read them for their columns and types alone"
_PUBLIC_ONLY = """\
  # The table is internal: it has content tags, and ids of quarantined records with their reasons. With this it has only
  # what may be passed on:
  # public_only: true
"""
_SYMBOLS = """\
  symbols: true   # the numbers of drawn clusters: `wordveil analytics` estimates counts from them
"""
_RELEASE_STEPS = """\
# An incremental release: each night draws what is new or has changed (`wordveil release --help`). First run
# `wordveil build` and `wordveil plan`; then every night `wordveil release night`, which sanitises, asks the gate and
# publishes. `wordveil init --airflow DIR` writes a DAG that does this.
"""
_FEED = """\
  changes: feed     # reads only what has changed, and sees deletions. The table's change data feed is on
"""
_SCAN = """\
  changes: scan     # compares contents. feed reads only what has changed and sees deletions: it needs the table's
                    # property delta.enableChangeDataFeed
"""
_WHOLE = """\
  # Each run reads the whole table: set the DAG's slice_param to "".
"""
_SLICED = """\
  # Or one day, which the DAG names. Then no run sees that records of other days were edited or deleted:
  # where: {where}
"""
_COSTS = {
    True: "its different words x epsilon, for\n# example 150 x 8 = 1200; under strict n_max x epsilon",
    False: "epsilon for\n# each text column",
}
_RECORDS_COST = {True: "20 x 1200 = 24000", False: "20 x 6 = 120"}
_AUTHOR_LIMIT = """\
  # The longest record's cost times the records of an author, over all nights, such as {costs}. For 95% of
  # the authors `wordveil plan --sample 1000 --set budgets.author=1000000` computes it, rounded up. An author over the
  # limit loses the records that come last by id, so that counts lack what frequent authors write: plan says how many.
  # author: (a number)   # FILL IN: over all releases of the ledger
"""
_NO_AUTHOR_LIMIT = """\
  # author: (a number)   # FILL IN: over all releases; needs input.author
"""
_RELEASE_REST = """\

ledger: {{path: {ledger}}}   # one for all releases that share records or authors

# What may be spent, in nats. Set at least one limit. Each version of a record costs {costs}.
budgets:
  unit: pure
  relation: {relation}   # same_skeleton: between texts that agree in what is shown; any_text: between any two
  on_exceeded: keep_last   # an edit over a limit leaves the last version, marked stale; quarantine removes the record
                           # from the release; fail: then nothing is drawn
  # record: (a number)   # FILL IN: all versions of one record together
{author}  # corpus: (a number)   # FILL IN: the most expensive author of this release

# What must hold before a version is published.
gate:
  exposes: [{exposes}]
  min_records: 1   # better what a night has at least
  # audited: [bundle]   # once `wordveil audit bundle` has passed
  max_empty_rate: 0.01
  max_refused_rate: 0.05   # of the records that a night reads, the share that budgets leave out
  # These two read original texts. What is published then also exposes gate: add it to exposes.
  # quarantine_rate: 0.01
  # unknown_rate: 0.10
"""
_WORDS = """\
mechanism:
  # Each word is drawn: detail for classifiers, and anyone with the originals links most records of usual length. For
  # one loss a text, hard to link, and its subject as a public sentence: `wordveil init --passages`.
  name: tree        # `wordveil docs mechanisms` compares all
  clusters: [500]   # of related words: nobody tells the words of one cluster apart, 20 at least
  classes: stop-words:en   # no cluster has both stop-words and other words; needs wordveil[languages] unless it is en
  merge: sensitive   # English words of health, religion, politics, ethnicity, sexuality, crime: a cluster each
  output: representative   # writes the most frequent of them that is no name; member writes any of these
  # The most that any two words cost, near or far: smaller hides more, larger keeps more of the meaning. There is no
  # default. 86 of 100 words become a related word at 8, 45 at 6, 10 at 4; the others become any word. `wordveil build`
  # says how many words an attacker recovers; `wordveil docs choosing` has a worked choice.
  # epsilon: (a number)   # FILL IN
  embedding: glove  # 100,000 English words x 100, or a path to your own: `wordveil docs choosing`
  # texts: public.txt   # public texts of your field, if any: `plan` says how well the vectors fit them
  # Set this only if neither vectors nor vocabulary were made from the private corpus, as is true of glove.
  # public: true   # FILL IN
"""
_WORDS_POLICY = """\
text:
  # A profile, by what the output is for (`wordveil docs text-policies`):
  #   readable         for people and classifiers who read the text. It shows punctuation, case, stop-words, which
  #                    tokens are numbers or names, and the length
  #   strict           for classifiers alone. It hides all of these, and leaves nothing to read
  #   carrier_phrases  as readable, with phrases that are frequent in public text in place of stop-words; needs ngrams
  profile: readable
  repeat: same      # a word becomes the same word throughout a text, and is drawn and paid for once; this shows too
  stop_word_capitals: replace   # US, IT and WHO are replaced; us, it and who stay
  articles: agree   # "a" or "an" by the word that is written, and not by the hidden one
  # In place of these four lines:
  # profile: strict
  # n_max: 128      # public: longer texts are cut, shorter ones filled with padding, of which some comes out as words.
  #                 # By what anybody knows of such texts, and not by this table: queries and short messages 32,
  #                 # support tickets 128, news articles 512
{classes}  language: en      # of the embedding's words
  {languages}
  max_unknown_share: 0.5   # refuses a record of which the embedding knows less than half: it would come out as noise
"""
_PASSAGES = """\
mechanism:
  # Each text is drawn once, and written as a public sentence on the same subject: topics, trends and routing, hard to
  # link. For detail of words: `wordveil init` without --passages.
  name: passages
  # The most that a text costs, whatever its length. There is no default. 80 of 100 texts keep their subject at 4 with
  # 16 clusters, at 5 with 37, at 6 with 100, at 7 with 270.
  # epsilon: (a number)   # FILL IN
  clusters: 100     # subjects: about e^epsilon / 4
  passages: wordnet # 48,637 English sentences; better the path of public texts of your own field, a text a line
  embedding: glove  # 100,000 English words x 100, or a path to your own: `wordveil docs choosing`
  # Set this only if neither vectors nor passages were made from the private corpus, as is true of glove and wordnet.
  # public: true   # FILL IN
"""
_PASSAGES_POLICY = """\
text:
  profile: passages # one draw for a text; nothing is copied. unit: sentence with n_max: 4 draws so many sentences
{classes}  language: en      # of the embedding's words
  {languages}
  max_unknown_share: 0.5   # refuses a record of which the embedding knows less than half
"""
_TEMPLATE = """\
# Made from {source}. You must still set every
# FILL IN. Relative paths are taken from the directory of this file.
{steps}format_version: 2

# Long-lived: the name of what is published, not of one run. Another name draws other noise.
release: {release}

input:
  path: {path}
  format: {format}
{options}{changes}  id: {id}
  text: {text}
  {author}
  # Published unchanged beside the text. {partitions}
  keep: [{keep}]
  # Not kept, and therefore not in the output. Add to keep only what may be published{gated}:
{left}

{mechanism}bundle_store: bundles     # where `wordveil build` puts what the job draws with

{policy}
# Make one with: wordveil key new {key}. Keep it as secret as the corpus.
# key: {{file: wordveil.key}}   # FILL IN

output:
{output}  partition_by: [{partition_by}]
{rest}"""
