"""The audit of a release on arrays: shipped policies pass, and broken pipelines are caught by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from support import toys
from support.audits import list_refuted
from wordveil.artifacts.bundle import Bundle, open_bundle
from wordveil.audit.canaries import audit as module
from wordveil.audit.canaries.audit import ReleaseClaim, check_layout, check_structure
from wordveil.audit.canaries.compare import CanaryRun
from wordveil.audit.canaries.documents import DocumentPlan
from wordveil.audit.canaries.tables import CanaryOutput, Inputs
from wordveil.audit.findings import Finding, Verdict
from wordveil.crypto.keys import MasterKey
from wordveil.mechanisms.base import TokenBatch
from wordveil.mechanisms.tables.exponential import Exponential
from wordveil.records import codec, sanitiser
from wordveil.records.columns import ONE_TEXT, TextColumns
from wordveil.records.sanitiser import RecordSanitiser, RecordSettings, find_refusals
from wordveil.records.schema import REASON_COLUMN, STATISTICS
from wordveil.text.codec import Codec, Encoded
from wordveil.text.draft import DraftPolicy
from wordveil.text.policy import TextPolicy, with_profile

STOP_WORDS = ("and", "of", "the")
SIZE = 300
POLICIES = {
    "strict": with_profile("strict", n_max=8),
    "strict, nothing refused": with_profile("strict", n_max=8, refused="empty"),
    "one token": with_profile("strict", n_max=1, refused="empty"),
    "readable": with_profile("readable", stop_word_list=STOP_WORDS),
    "readable, capitals replaced": with_profile(
        "readable", stop_word_list=STOP_WORDS, stop_word_capitals="replace", repeat="same"
    ),
    "bag": TextPolicy(output="bag"),
    "padded bag": TextPolicy(output="bag", length="pad", n_max=8),
    "sampled": TextPolicy(length="sample", n_max=6, refused="empty"),
    "words alone": TextPolicy(),
    "unknown words kept": TextPolicy(unknown="keep", controls="quarantine"),
    "unknown words dropped": TextPolicy(unknown="drop", tokeniser="whitespace"),
    "digits kept": TextPolicy(digits="keep", case="exact", max_unknown_share=0.05),
    "stop-words dropped": TextPolicy(stop_words="drop", stop_word_list=STOP_WORDS, case="restore"),
    "repeated words drawn once": TextPolicy(repeat="same"),
    "repeated, padded": TextPolicy(repeat="same", length="pad", n_max=8),
    "types shown": TextPolicy(types={"email": "tag", "number": "resample", "url": "surrogate"}, punctuation="keep"),
}
OFTEN = ("strict, nothing refused", "readable", "bag")  # in every run of the tests
OPEN = ("length", "presence")
MOST_BYTES = 5_000


def sanitise_side(inputs: Inputs, sanitiser: RecordSanitiser, columns: TextColumns, *, other: bool) -> CanaryOutput:
    """One of the tables, refused and sanitised as the job does it."""
    ids = pa.array(inputs.ids)
    raw = [pa.array(texts, pa.binary()) for texts in inputs.texts(other=other)]
    strings = [pa.Array.from_buffers(pa.string(), len(ids), values.buffers(), values.null_count) for values in raw]
    reason = find_refusals(ids, strings, MOST_BYTES)
    readable = [pc.if_else(reason.is_null(), values, pa.scalar(None, pa.string())) for values in strings]
    kept = [pa.array(values) for values in inputs.kept.values()]
    names = ["id", *inputs.kept, *columns.inputs, REASON_COLUMN]
    batch = pa.RecordBatch.from_arrays([ids, *kept, *readable, reason], names=names)
    table = pa.Table.from_batches(list(sanitiser.sanitise(batch))).drop_columns(list(STATISTICS))
    return CanaryOutput(table, columns)


@pytest.fixture(scope="module")
def make_bundle(tmp_path_factory: pytest.TempPathFactory) -> Callable[[TextPolicy], Bundle]:
    embedding = toys.random_embedding(SIZE, 4, seed=5)
    words = [*STOP_WORDS, *embedding.words.to_pylist()[len(STOP_WORDS) :]]
    embedding = toys.toy_embedding(words, np.random.default_rng(2).standard_normal((SIZE, 4)))
    store: Path = tmp_path_factory.mktemp("bundles")
    made: dict[tuple[bool, bool], Bundle] = {}

    def make(policy: TextPolicy) -> Bundle:
        key = policy.pads, policy.draws_types
        if key not in made:
            settings = {"epsilon": 20.0, "gamma": 2.0}
            lists = "en" if policy.draws_types else ""
            made[key] = toys.make_bundle(
                store, embedding, settings, padding=key[0], mechanism="exponential", lists=lists
            )
        return made[key]

    return make


@pytest.fixture
def audit(make_bundle: Callable[[TextPolicy], Bundle], tmp_path: Path) -> Callable[..., list[Finding]]:
    def run(
        policy: TextPolicy, *features: str, seed: int = 0, columns: TextColumns = ONE_TEXT, alpha: float = 0.01
    ) -> list[Finding]:
        """Find what an audit of the policy finds; ``features``: beginnings of those looked at, or all."""
        bundle = make_bundle(policy)
        key = MasterKey(bytes([seed % 256, *range(31)]))
        plan = DocumentPlan(policy, len(columns.names), MOST_BYTES, lists=bundle.lists)
        inputs = module.make_inputs(bundle, plan, None, keep=("day",), copies=48, seed=seed)
        if features:
            chosen = [pair for pair in inputs.pairs if pair.feature.startswith(features)]
            inputs = Inputs.make(chosen, 48, ("day",), np.random.default_rng(seed))
        settings = RecordSettings("canaries", "run", policy, ("day",), columns=columns)
        blind = open_bundle(module.write_blind_bundle(bundle, tmp_path))
        runs = []
        for is_blind in (True, False):
            job = RecordSanitiser(settings, blind if is_blind else bundle, key.for_release("canaries"))
            sides = [sanitise_side(inputs, job, columns, other=other) for other in (False, True)]
            runs.append(CanaryRun(*sides, is_blind, bundle.vocabulary.size))
        fields = frozenset({"id", "day", *(field.name for field in columns.output_fields)})
        claim = ReleaseClaim(str(settings.relation), settings.exposes, fields)
        return list(module.judge_runs(inputs, runs, claim, alpha))

    return run


def declare(monkeypatch: pytest.MonkeyPatch, *exposes: str) -> None:
    monkeypatch.setattr(DraftPolicy, "exposes", property(lambda _: tuple(sorted(exposes))))


@pytest.mark.parametrize(
    "name", [name if name in OFTEN else pytest.param(name, marks=pytest.mark.long) for name in POLICIES]
)
def test_policies_show_what_they_say(audit: Callable[..., list[Finding]], name: str):
    """And everything that they say is seen."""
    findings = audit(POLICIES[name])
    assert list_refuted(findings) == set()
    seen = {finding.test: finding.verdict for finding in findings}
    exposed = [f"exposes:{exposure}" for exposure in POLICIES[name].exposes]
    assert {seen[test] for test in exposed} <= {Verdict.NOT_REFUTED}
    assert seen["exposes:column:day"] is Verdict.HOLDS


@pytest.mark.long
@pytest.mark.parametrize("name", ["strict", "readable", "bag", "sampled"])
def test_true_claims_are_rarely_refuted(audit: Callable[..., list[Finding]], name: str):
    """The counts of p-values are discrete, so that far fewer than 1% are below 1%."""
    assert sum(bool(list_refuted(audit(POLICIES[name], seed=seed))) for seed in range(25)) <= 2


def test_several_columns(audit: Callable[..., list[Finding]]):
    columns = TextColumns(("subject", "body"), (3, 5))
    some = ("length", "column", "empty", "order", "presence", "case")
    assert list_refuted(audit(POLICIES["strict, nothing refused"], *some, columns=columns)) == set()
    findings = audit(
        TextPolicy(punctuation="keep"), "length", "column", "punctuation", columns=TextColumns(("a", "b.c"))
    )
    assert list_refuted(findings) == set()
    assert "canary:column" in {finding.test for finding in findings}


def test_noise_of_what_is_hidden_alone(audit: Callable[..., list[Finding]], monkeypatch: pytest.MonkeyPatch):
    """Versions that differ in a comma or a capital would share it."""
    monkeypatch.setattr(Encoded, "shown_content", ())
    assert list_refuted(audit(POLICIES["readable"], "punctuation", "case")) == {"canary:noise"}


def split(message: bytes) -> tuple[bytes, bytes]:
    end = 8 + int.from_bytes(message[:8], "little")
    return message[:end], message[end:]


@pytest.mark.parametrize(
    ("part", "names", "features", "test"),
    [
        # All versions of a record would share it; all records with one text would.
        (0, ("strict", "words alone", "sampled"), ("length", "unknown", "order"), "canary:noise"),
        (1, ("strict", "words alone", "one token"), ("length",), "canary:ids"),
    ],
)
def test_noise_of_the_record_or_the_text_alone(
    audit: Callable[..., list[Finding]],
    monkeypatch: pytest.MonkeyPatch,
    part: int,
    names: tuple[str, ...],
    features: tuple[str, ...],
    test: str,
):
    real = sanitiser.derive_contexts
    same = lambda key, scope, messages: real(key, scope, [split(message)[part] for message in messages])
    monkeypatch.setattr(sanitiser, "derive_contexts", same)
    for name in names:
        assert test in list_refuted(audit(POLICIES[name], *features)), name


def test_unknown_words_copied(audit: Callable[..., list[Finding]], monkeypatch: pytest.MonkeyPatch):
    declare(monkeypatch, *OPEN)
    found = list_refuted(audit(POLICIES["unknown words kept"], "unknown", "length", "presence"))
    assert found == {"canary:unknown_words"}


def test_padding_copied(audit: Callable[..., list[Finding]], monkeypatch: pytest.MonkeyPatch):
    """The number of words shows under a relation of any two texts."""
    real = Exponential.draw

    def draw(self: Exponential, batch: TokenBatch, keys: Any) -> TokenBatch:
        drawn = real(self, batch, keys)
        return replace(drawn, ids=np.where(batch.ids == SIZE, SIZE, drawn.ids).astype(np.int32))

    monkeypatch.setattr(Exponential, "draw", draw)
    assert "canary:length" in list_refuted(audit(POLICIES["strict"], "length"))


def test_a_length_that_shows(audit: Callable[..., list[Finding]], monkeypatch: pytest.MonkeyPatch):
    """Texts are cut and not filled."""
    real = Codec._fit

    def fit(self: Codec, ids: Any, offsets: Any) -> Any:
        fitted, bounds = real(self, ids, offsets)
        if not self._policy.pads:
            return fitted, bounds
        left = fitted != SIZE
        return fitted[left], np.concatenate([[0], np.cumsum(left)])[bounds]

    monkeypatch.setattr(Codec, "_fit", fit)
    assert "canary:length" in list_refuted(audit(POLICIES["strict"], "length"))


def test_an_order_that_stays(audit: Callable[..., list[Finding]], monkeypatch: pytest.MonkeyPatch):
    """A bag that is not shuffled, under a mechanism that keeps most words."""
    monkeypatch.setattr(codec, "draw_order", lambda offsets, *_: np.arange(offsets[-1]))
    assert "canary:order" in list_refuted(audit(POLICIES["bag"], "order", alpha=0.05))


@pytest.mark.parametrize("exposure", ["presence", "length", "case", "punctuation", "stop_words", "types"])
def test_what_is_not_declared(audit: Callable[..., list[Finding]], monkeypatch: pytest.MonkeyPatch, exposure: str):
    policy = POLICIES["readable"]
    declare(monkeypatch, *({*policy.exposes} - {exposure}))
    assert f"canary:{exposure}" in list_refuted(audit(policy, exposure))


@pytest.mark.parametrize(
    "exposure",
    [
        "case",
        "punctuation",
        "digits",
        "stop_words",
        "unknown_words",
        "types",
        "repetition",
        "language",
        "length",
        "presence",
    ],
)
def test_what_is_declared_and_cannot_occur(
    audit: Callable[..., list[Finding]], monkeypatch: pytest.MonkeyPatch, exposure: str
):
    policy = POLICIES["strict, nothing refused"]
    declare(monkeypatch, exposure)
    assert list_refuted(audit(policy, exposure)) == {f"exposes:{exposure}"}


@pytest.fixture
def released(make_bundle: Callable[[TextPolicy], Bundle]) -> tuple[Any, CanaryRun, ReleaseClaim]:
    policy = POLICIES["words alone"]
    bundle = make_bundle(policy)
    inputs = module.make_inputs(bundle, DocumentPlan(policy), None, keep=("day",), copies=48)
    settings = RecordSettings("canaries", "run", policy, ("day",))
    drawn = RecordSanitiser(settings, bundle, toys.KEYS)
    one, other = (
        replace(sanitise_side(inputs, drawn, ONE_TEXT, other=side), files=(("", 9),)) for side in (False, True)
    )
    return (
        inputs,
        CanaryRun(one, other, is_blind=False, size=SIZE),
        ReleaseClaim("same_length", settings.exposes, frozenset(one.table.column_names)),
    )


def broken(released: tuple[Any, CanaryRun, ReleaseClaim], change: Callable[[Any, Any], Any]) -> set[str]:
    inputs, run, claim = released
    changed = replace(run, second=replace(run.second, table=change(run.second.table, inputs)))
    layout = check_layout([changed], claim)
    return list_refuted([*check_structure(inputs, [changed], claim), *([layout] if layout else [])])


def test_a_sound_structure(released: tuple[Any, CanaryRun, ReleaseClaim]):
    assert broken(released, lambda table, _: table) == set()


def test_rows_in_the_order_of_their_sizes(released: tuple[Any, CanaryRun, ReleaseClaim]):
    sizes = lambda table, inputs: np.argsort([len(text or b"") for text in inputs.texts(other=True)[0]])
    assert broken(released, lambda table, inputs: table.take(sizes(table, inputs))) == {"canary:layout"}


def test_columns_that_should_not_be_there(released: tuple[Any, CanaryRun, ReleaseClaim]):
    more = lambda table, inputs: table.append_column("more", [list(inputs.secrets)])
    assert broken(released, more) == {"canary:columns", "canary:secrets"}
    texts = lambda table, inputs: table.set_column(1, "day", [[mark.upper() for mark in inputs.marks]])
    assert broken(released, texts) == {"canary:kept", "canary:secrets"}


def test_tags_and_claims_that_are_wrong(released: tuple[Any, CanaryRun, ReleaseClaim]):
    def repeat_tag(table: Any, _: Any) -> Any:
        place = table.column_names.index("content_tag")
        return table.set_column(place, "content_tag", [[b"same"] * table.num_rows])

    assert broken(released, repeat_tag) == {"canary:tags"}
    inputs, run, claim = released
    assert list_refuted(check_structure(inputs, [run], replace(claim, relation="any_text"))) == {"canary:privacy"}
    assert list_refuted(check_structure(inputs, [run], replace(claim, exposes=("length",)))) == {"canary:privacy"}


def test_too_few_copies(make_bundle: Callable[[TextPolicy], Bundle]):
    policy = POLICIES["strict"]
    with pytest.raises(ValueError, match="copies = 9: fewer than 48"):
        module.make_inputs(make_bundle(policy), DocumentPlan(policy), None, copies=9)
