"""Configurations: every fault at once, with key, value, what is allowed and the near miss; secrets never shown."""

from __future__ import annotations

import datetime as dt
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.repository import ROOT
from wordveil.config.arguments import parse_arguments
from wordveil.config.load import Config, load_config, parse_config
from wordveil.config.mechanisms import MechanismSection
from wordveil.config.schema import TextSection
from wordveil.errors import ConfigError
from wordveil.mechanisms.registry import MECHANISMS
from wordveil.privacy.events import Composition
from wordveil.privacy.relations import Relation
from wordveil.text.choices import Profile
from wordveil.text.draft import CHOICES


def base() -> dict[str, Any]:
    return {
        "format_version": 2,
        "release": "support-mail",
        "input": {"path": "/lake/in", "id": "ticket", "text": "body", "author": "customer", "keep": ["ds"]},
        "mechanism": {"name": "laplace", "epsilon": 8.0, "embedding": "demo", "public": True},
        "bundle_store": "/lake/bundles",
        "text": {"profile": "strict", "n_max": 64},
        "key": {"env": "WORDVEIL_KEY"},
        "output": {"path": "/lake/out", "partition_by": ["ds"]},
    }


IGNORED = "spark.sql.files.ignoreCorruptFiles"
WHO = {"column": "who", "as": "pseudonym"}
TREE = {"name": "tree", "embedding": "demo", "public": True}


def changed(path: str, value: Any) -> dict[str, Any]:
    settings = base()
    *parents, last = path.split(".")
    place = settings
    for parent in parents:
        place = place[parent]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return settings


def faults(settings: Any) -> list[str]:
    with pytest.raises(ConfigError) as error:
        parse_config(settings, "job.yaml")
    told = [str(fault) for fault in error.value.faults]
    assert all(len(fault) < 400 for fault in told), "long values are cut"
    return told


def load(directory: Path, *overrides: str) -> Config:
    (directory / "job.yaml").write_text(yaml.safe_dump(base()))
    return load_config(directory / "job.yaml", overrides)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("format_version", None, "format_version: is required"),
        ("format_version", 1, "format_version = 1: this wordveil reads format_version 2. Write the file again"),
        ("release", "a b" * 1000, ": use 1 to 128 letters"),
        ("release", None, "release: is required"),
        ("input.text", "", "input.text: is empty. Name the column that holds the text."),
        ("output.path", "", "output.path: is empty: fill it in, or remove it."),
        ("mechanism", TREE, "is required and has no default: it is the most that any two words, near or far, can"),
        ("mechanism.epsilon", 0, "mechanism.epsilon = 0: should be greater than 0"),
        ("mechanism.epsilon", "8", "valid number"),
        ("mechanism.search", "anoy", "mechanism.search = anoy: allowed: 'exact' or 'annoy'. Did you mean annoy?"),
        ("mechanism.embedding_format", "glov", "Did you mean glove?"),
        ("input.formt", "parquet", "input.formt: unknown key. Did you mean format?"),
        ("input.format", "detla", "is not a format that Spark is known to have. Did you mean delta?"),
        ("input.path", None, "input.path: name exactly one of input.path and input.table"),
        ("input.table", "lake.tickets", "input.table: name exactly one of input.path and input.table"),
        ("input.version", 3, "only Delta and Iceberg tables have versions. Set input.format: delta or iceberg"),
        ("input.timestamp", "2026-11-20", "input.timestamp = 2026-11-20: only Delta and Iceberg tables have versions"),
        ("input.timestamp", dt.datetime(2026, 11, 20, 3, tzinfo=dt.UTC), "Write it in quotes"),
        ("input.keep", ["body", "ds"], "input.keep = body: is the text column"),
        ("input.keep", ["ticket", "ds"], "input.keep = ticket: is the id column"),
        ("input.keep", ["Status", "ds"], "input.keep = Status: is a name that the output reserves, in any case"),
        ("input.id", "Run_ID", "input.id = Run_ID: is a name that the output reserves"),
        ("input.keep", ["ds", "DS"], "input.keep = DS: is listed more than once"),
        ("input.keep", [{"column": "body", "as": "pseudonym"}, "ds"], "input.keep = body: is the text column; its"),
        ("input.keep", [{"column": "ticket", "as": "pseudonym"}, "ds"], "input.keep = ticket: is the id column, so"),
        ("input.keep", ["ds", {"column": "DS", "as": "pseudonym", "name": "x"}], "= DS: is kept unchanged, so that a"),
        ("input.keep", ["ds", WHO, {**WHO, "name": "x"}], "input.keep = who: is a pseudonym already"),
        ("input.keep", ["ds", {**WHO, "name": "DS"}], "input.keep = DS: is the name of another column of"),
        ("input.keep", ["ds", {**WHO, "name": "body"}], "input.keep = body: is the name of another column of"),
        ("input.keep", ["ds", {**WHO, "name": "status"}], "input.keep = status: is the name of another"),
        ("input.keep", [{"column": "ds", "as": "pseudonym"}], "output.partition_by = ds: is a column of pseudonyms"),
        ("output.path", "hdfs://name:8020/a/b:c", "output.path = hdfs://name:8020/a/b:c: has a colon"),
        ("ledger", {"path": "03:00/ledger"}, "ledger.path = 03:00/ledger: has a colon"),
        ("text.n_max", None, "text.n_max: profile: strict (the default) hides the length and needs n_max"),
        ("text.types", {"email": "surogate"}, "text.types.email = surogate: "),
        ("text.types", {"e-mail": "mask"}, "Did you mean email?"),
        ("text.types", "every", "such as {email: surrogate}"),
        ("text.unknwn", "mask", "text.unknwn: unknown key. Did you mean unknown?"),
        ("text.punctuation", "keep", "text.length: pad hides the length, but the policy copies punctuation"),
        ("key", {}, "key: name exactly one of key.file and key.env"),
        ("key", None, "key: is required"),
        ("output.partition_by", ["dss"], "output.partition_by = dss: is not among input.keep; only kept columns are"),
        ("spark", {"options": {IGNORED: "true"}}, f"spark.options = {IGNORED}"),
        ("bundel_store", "x", "bundel_store: unknown key. Did you mean bundle_store?"),
    ],
)
def test_each_fault_is_named(path, value, words):
    found = faults(changed(path, value))
    assert any(words in fault for fault in found), found
    assert len(found) == 1, found


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"column": "who"}, "input.keep.1.as: is required: write as: pseudonym, or the column's name alone"),
        ({**WHO, "as": "hash"}, "input.keep.1.as = hash: allowed: 'pseudonym'."),
        ({**WHO, "nam": "x"}, "input.keep.1.nam: unknown key. Did you mean name?"),
        ({**WHO, "rotate": "yes"}, "input.keep.1.rotate = yes: should be a valid boolean. Write true or false."),
    ],
)
def test_each_fault_of_a_pseudonym_is_named(written, words):
    assert faults(changed("input.keep", ["ds", written]))[0].startswith(words)


def test_annoy_needs_its_settings_and_every_fault_is_told():
    annoy = {**base()["mechanism"], "search": "annoy"}
    required = "mechanism.search_k: is required with search: annoy"
    for settings, words in (
        ({}, ["mechanism.n_trees: is required", required]),
        (
            {"n_trees": 0, "search_k": True},
            ["greater than or equal to 1", "search_k = true: should be a valid integer"],
        ),
        ({"n_trees": 10, "epsilon": -1.0}, ["mechanism.epsilon = -1.0", required]),
    ):
        found = faults({**base(), "mechanism": {**annoy, **settings}})
        assert len(found) == len(words), found
        assert all(any(word in fault for fault in found) for word in words), found
    chosen = {**annoy, "n_trees": 10, "search_k": 500}
    recipe = parse_config(changed("mechanism", chosen), "job.yaml").recipe("")
    assert recipe.settings == {"epsilon": 8.0, "search": "annoy", "n_trees": 10, "search_k": 500, "pad_height": None}


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_may_name_frequencies_and_needs_none(name):
    settings = vars(MECHANISMS[name].examples()[""].small)
    section = {"name": name, "embedding": "demo", "public": True, **settings}
    length = "pad" if MECHANISMS[name].reads_context else "sample"
    text = {"profile": "strict", "length": length, "n_max": 8}
    whole = {**base(), "text": {"profile": "passages"} if MECHANISMS[name].draws_texts else text}
    plain = parse_config({**whole, "mechanism": section}, "job.yaml")
    named = parse_config({**whole, "mechanism": {**section, "frequencies": "/lake/counts.tsv"}}, "job.yaml")
    assert named.mechanism.public_files == {**plain.mechanism.public_files, "frequencies": "/lake/counts.tsv"}
    assert "frequencies" not in plain.recipe("d").inputs
    assert named.recipe("d").inputs["frequencies"] == {"name": "/lake/counts.tsv", "digest": ""}
    assert named.recipe("d", {"frequencies": "e"}).inputs["frequencies"] == {"name": "/lake/counts.tsv", "digest": "e"}
    assert named.recipe("d").settings == plain.recipe("d").settings


@pytest.mark.parametrize(
    ("name", "text", "problems"),
    [
        ("passages", {"profile": "passages"}, []),
        (
            "passages",
            {"profile": "strict", "n_max": 8},
            ["text.profile = strict: contradicts mechanism.name: passages"],
        ),
        ("passages", {"profile": "readable"}, ["text.profile = readable: contradicts"]),
        ("tree", {"profile": "passages"}, ["text.profile = passages: needs a mechanism whose symbols stand for texts"]),
        ("passages", {"profile": "passages", "n_max": 8}, ["text.n_max = 8: has no meaning with unit: text"]),
        ("passages", {"profile": "passages", "case": "restore"}, ["text.unit: text copies nothing", "text.length"]),
        ("passages", {"profile": "passages", "length": "as_is"}, ["text.length = as_is: as_is has no meaning"]),
        ("passages", {"profile": "passages", "unit": "sentence"}, ["text.n_max: unit: sentence hides the number"]),
        ("passages", {"profile": "passages", "unit": "word", "n_max": 8}, ["text.profile = passages: contradicts"]),
    ],
)
def test_texts_are_drawn_whole_by_their_mechanism_alone(name: str, text: dict[str, Any], problems: list[str]):
    own = {"passages": "wordnet", "clusters": 50} if name == "passages" else {}
    section = {"name": name, "epsilon": 6.0, "embedding": "demo", "public": True, **own}
    raw = {**base(), "mechanism": section, "text": text}
    if not problems:
        config = parse_config({**raw, "input": {**raw["input"], "text": ["subject", "body"]}}, "job.yaml")
        assert (config.policy.n_max, config.text_columns.widths, config.relation) == (2, (1, 1), "any_text")
        return
    found = faults(raw)
    assert all(any(problem in fault for fault in found) for problem in problems), found


PLACES = {
    "/lake/in": ("/lake/in", "/lake/in/p.txt", "/lake/out/part/p.parquet", "/lake//other/../in/p.txt"),
    "in": ("in/p.txt", "link.txt"),
    "file:///lake/./in/": ("/lake/in/p.txt",),
    "/lake/in/{p,q}.txt": ("/lake/in",),
}


@pytest.mark.parametrize(
    ("place", "input_path"), [(place, path) for path, places in PLACES.items() for place in places]
)
def test_passages_lie_where_no_record_is(place: str, input_path: str, tmp_path: Path):
    (tmp_path / "in").mkdir()
    (tmp_path / "link.txt").symlink_to(tmp_path / "in" / "p.txt")
    section = {"name": "passages", "epsilon": 6.0, "embedding": "demo", "public": True, "clusters": 50}
    raw = {**base(), "mechanism": {**section, "passages": place}, "text": {"profile": "passages"}}
    raw["input"]["path"] = input_path
    with pytest.raises(ConfigError, match=r"mechanism\.passages = .*: is (in|out)put\.path, inside it or above it"):
        parse_config(raw, "job.yaml", directory=tmp_path)
    raw["mechanism"]["passages"] = "/lake/input.txt"
    assert parse_config(raw, "job.yaml", directory=tmp_path).mechanism.name == "passages"
    with pytest.raises(ConfigError, match=r"mechanism\.texts = .*: is input\.path, inside it or above it"):
        parse_config(changed("mechanism.texts", "/lake/in/texts.txt"), "job.yaml")


def test_the_statement_of_what_is_public_covers_every_file():
    for value in (None, False):
        (message,) = faults(changed("mechanism.public", value))
        for word in ("embedding", "frequencies", "similarities", "pairs", "classes", "n-grams", "generator"):
            assert word in message


@pytest.mark.parametrize(
    ("mechanism", "expected"),
    [
        (
            {"name": "laplas", "epsilon": 4.0, "search": "annoy", "n_trees": 0},
            ["n_trees = 0: should be", "name = laplas", "search_k: is required with search: annoy"],
        ),
        (
            {"name": "exponentail", "metrik": "euclidean"},
            ["epsilon: is required", "metrik: unknown key. Did you mean metric?", "name"],
        ),
        # Nothing is similar: what is a mechanism's own is left alone, what all share is not.
        (
            {"name": "zzz", "epsilon": -1.0, "embedding": 3},
            ["embedding = 3: should be a valid string", f"name = zzz: should be one of {', '.join(MECHANISMS)}"],
        ),
        ({"name": 5, "public": False}, ["name = 5: should be one", "public = false: only `public: true` can be used"]),
        ({"epsilon": 4.0}, [f"name: is required: one of {', '.join(MECHANISMS)}"]),
        ({"name": "exponential", "epsilon": 4.0, "neighbors": 9}, ["neighbors: unknown key. Did you mean neighbours?"]),
        ({"name": "exponential", "epsilon": 4.0, "metric": "cosine"}, ["metric = cosine: allowed: 'euclidean'"]),
        ({"name": "laplace", "epsilon": 4.0, "gamma": 2.0}, ["gamma: unknown key. Allowed here:"]),
    ],
)
def test_a_mechanism_s_faults_hide_no_other(mechanism: dict[str, Any], expected: list[str]):
    found = faults({**base(), "mechanism": {"embedding": "demo", "public": True, **mechanism}})
    for fault, words in zip(sorted(found), expected, strict=True):
        assert fault.startswith(f"mechanism.{words}")


@pytest.mark.parametrize("name", MECHANISMS)
def test_section_has_settings_fields_defaults_and_returns_them(name: str):
    kind = MECHANISMS[name].settings_type
    required: dict[str, Any] = {"epsilon": 8.0} if kind.has_epsilon() else {}
    required |= {"model": "/lake/generator.npz"} if "model" in kind.input_files else {}
    required |= {"passages": "wordnet", "clusters": 50} if MECHANISMS[name].draws_texts else {}
    section = {"name": name, "embedding": "demo", "public": True, **required}
    text = {"profile": "passages"} if MECHANISMS[name].draws_texts else {"length": "as_is"}
    parsed = parse_config({**base(), "mechanism": section, "text": text}, "job.yaml").mechanism
    assert parsed.settings == kind(**required)
    assert type(parsed.settings) is kind
    assert parsed.nominal_epsilon == required.get("epsilon", 0.0)
    assert set(type(parsed).model_fields) - set(MechanismSection.model_fields) == {field.name for field in fields(kind)}


def test_a_generator_needs_its_weights():
    for model in ({}, {"model": None}, {"model": ""}):
        section = {"name": "er-ae", "epsilon": 3.0, "embedding": "demo", "public": True, **model}
        (fault,) = faults({**base(), "mechanism": section})
        assert fault.startswith("mechanism.model")


def test_an_input_is_a_path_or_a_table_at_one_version():
    delta = {**base(), "input": {**base()["input"], "format": "delta", "version": 12}}
    config = parse_config(delta, "job.yaml")
    assert (config.source.setting, config.source.name, config.source.needs_delta) == ("input.path", "/lake/in", True)
    table = {"id": "ticket", "text": "body", "keep": ["ds"], "version": 12, "table": "lake.tickets"}
    source = parse_config({**base(), "input": table}, "job.yaml").source
    assert (source.setting, source.name, source.needs_delta) == ("input.table", "lake.tickets", True)
    assert not parse_config(base(), "job.yaml").source.needs_delta
    assert faults({**base(), "input": {**table, "format": "delta"}}) == [
        "input.format = delta: must not be set with input.table, because the catalogue knows the format. Remove it."
    ]
    assert faults({**base(), "input": {**table, "version": None, "timestamp": "yesterday"}}) == [
        'input.timestamp = yesterday: is not a date or time. Write "2026-11-20 03:00:00", in quotes.'
    ]
    both = {**base(), "input": {**delta["input"], "timestamp": "2026-11-20 03:00:00"}}
    assert "input.timestamp = 2026-11-20 03:00:00: and input.version both say" in faults(both)[0]


def test_all_faults_are_reported_at_once():
    settings = base()
    settings["release"] = ""
    settings["mechanism"].update(epsilon=-1, search="nearest")
    settings["input"].update(keep=["body", "text"], formt="parquet")
    settings["text"] = {"case": "restore", "output": "bag"}
    settings["output"]["partition_by"] = ["nowhere"]
    settings["key"] = {}
    assert {fault.split(":")[0].split(" =")[0] for fault in faults(settings)} == {
        *("release", "input.formt", "input.keep", "mechanism.search", "mechanism.epsilon"),
        *("text.n_max", "text.length", "text.output", "key", "output.partition_by"),
    }


def test_what_is_left_blank_is_said_to_be_empty():
    blank = {**base(), "gate": None, "key": None}
    blank["input"] = {**blank["input"], "id": None, "text": None}
    blank["mechanism"] = {**blank["mechanism"], "epsilon": None}
    required = "is required and has no default: it is the privacy of each word, per unit of distance."
    required += " `wordveil docs choosing` works through a choice."
    assert faults(blank) == [
        "input.id: is empty. Name the column that holds the ids.",
        "input.text: is empty. Name the column that holds the text.",
        f"mechanism.epsilon: {required}",
        "key: is required: set key.file or key.env. There is no default: no key, no run.",
        "gate: is empty: fill it in, or remove it.",
    ]


def test_profile_that_does_not_exist_is_the_policys_only_fault():
    """What the other settings mean depends on it."""
    allowed = "allowed: 'strict', 'passages', 'readable' or 'carrier_phrases'. Did you mean readable?"
    assert faults(changed("text", {"profile": "readble", "repeat": "same"})) == [f"text.profile = readble: {allowed}"]


def test_a_key_in_the_configuration_is_refused_and_not_shown():
    secret = "5f" * 32
    for section in ({"value": secret}, {"env": secret + " x"}, {"file": ["list", secret]}, secret):
        assert secret not in "\n".join(faults(changed("key", section)))


@pytest.mark.parametrize("text", [{"n_max": 64}, {"profile": "strict", "n_max": 64}, {"length": "as_is"}], ids=str)
def test_under_strict_a_word_is_not_drawn_once(text):
    (fault,) = faults(changed("text", {**text, "repeat": "same"}))
    assert fault.startswith("text.repeat = same: contradicts profile: strict (the default), whose bound covers any two")
    assert "which places of a text hold the same word. Remove it, or set profile: readable" in fault
    parse_config(changed("text", {**text, "repeat": "each"}), "job.yaml")
    with pytest.raises(ConfigError, match=r"text\.repeat = same: contradicts profile: strict"):
        parse_arguments({"id": "id", "text": "body"}, {**text, "repeat": "same"})


HIDDEN = {"profile": "readable", "case": "lower", "punctuation": "drop", "stop_words": "hide", "repeat": "same"}
HIDDEN |= {"types": "none", "names": "words"}
BUDGET = {"unit": "pure", "relation": "any_text", "record": 1e9, "delta": 1e-6}


def released(source: dict[str, Any] | None = None, **sections: Any) -> dict[str, Any]:
    """A release, with other settings of ``input`` and other sections."""
    columns = {"path": "/lake/in", "format": "delta", "id": "id", "text": "body", **(source or {})}
    return {
        **base(),
        "input": {name: value for name, value in columns.items() if value is not None},
        "output": {"path": "/lake/out", "format": "delta"},
        "ledger": {"path": "/lake/ledger"},
        **sections,
    }


def test_what_a_fault_of_repetition_advises_is_sound():
    for text in ({"profile": "readable", "repeat": "same"}, HIDDEN, {**HIDDEN, "length": "pad", "n_max": 64}):
        config = parse_config(changed("text", text), "job.yaml")
        assert config.relation is Relation.SAME_SKELETON
        assert config.policy.composition is Composition.DISTINCT
        assert "repetition" in config.policy.exposes
    assert config.policy.copies == ()
    assert "length" not in config.policy.exposes


@pytest.mark.parametrize("name", ["budgets", "gate"])
def test_bound_for_any_two_texts_with_repeat_same_is_refused(name):
    """With a hidden length too; a gate can allow repetition, and refuse it."""
    settings = released(text={**HIDDEN, "length": "pad", "n_max": 64})
    section = {"budgets": BUDGET, "gate": {"relation": "any_text"}}[name]
    assert any(fault.startswith(f"{name}.relation") for fault in faults({**settings, name: section}))
    parse_config({**settings, name: {**section, "relation": "same_skeleton"}}, "job.yaml")
    shown = ["presence", "repetition", "edited", "withdrawn"]
    parse_config({**settings, "gate": {"exposes": shown}}, "job.yaml")
    told = faults({**settings, "gate": {"exposes": [entry for entry in shown if entry != "repetition"]}})
    assert any("the release also shows repetition" in fault for fault in told)


def test_column_called_stale_contradicts_a_release_adding_one():
    settings = released({"keep": ["Stale"]}, budgets=BUDGET)
    parse_config(settings, "job.yaml")
    told = faults({**settings, "budgets": {**BUDGET, "on_exceeded": "keep_last"}})
    assert any("Stale" in fault and "keep_last" in fault for fault in told)


SHUFFLED: dict[str, Any] = {
    "mechanism": {"name": "passages", "embedding": "demo", "epsilon": 5.0, "passages": "wordnet", "clusters": 37},
    "text": {"profile": "passages", "refused": "empty"},
    "output": {"path": "/lake/out", "public_only": True, "shuffle": {"epsilon": 0.5, "delta": 1e-8}},
}


def shuffled(**sections: dict[str, Any]) -> dict[str, Any]:
    shared = {**SHUFFLED, "input": base()["input"]}
    made = {name: {**shared.get(name, {}), **sections.get(name, {})} for name in {**shared, **sections}}
    made["mechanism"]["public"] = True
    return {**base(), **made}


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"output": {"order": "input"}}, "output.order = input: contradicts output.shuffle"),
        ({"output": {"public_only": False}}, "output.public_only = false: must be true with output.shuffle"),
        ({"output": {"shuffle": {"delta": 1e-8}}}, "output.shuffle.epsilon: is required"),
        ({"input": {"keep": ["ds", WHO]}}, "input.keep = who: must not be a pseudonym with output.shuffle"),
        ({"output": {"shuffle": {"epsilon": 0.5, "delta": 1.0}}}, "output.shuffle.delta = 1.0: should be less than 1"),
        ({"output": {"shuffle": {"epsilon": 5.0, "delta": 1e-8}}}, "is not below 5, the loss of a record's own draws"),
        ({"text": {"refused": "quarantine"}}, "a record that is refused for its text is missing from the table"),
        ({"input": {"format": "csv"}}, "a record that is refused for its text is missing from the table"),
        ({"gate": {"min_records": 10}}, "gate.min_records: is measured on draws that the table does not show"),
        (
            {"mechanism": {"name": "exponential", "epsilon": 1.0, "passages": None}},
            "needs a mechanism with one pure loss",
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_a_shuffled_table_cannot_be_is_named(sections: dict[str, Any], words: str):
    parse_config(shuffled(), "job.yaml")
    assert any(words in fault for fault in faults(shuffled(**sections))), faults(shuffled(**sections))


def test_few_words_of_a_pure_loss_may_be_shuffled():
    text = {"profile": "strict", "n_max": 3, "refused": "empty"}
    words = {**base(), "text": text, "output": SHUFFLED["output"]}
    config = parse_config({**words, "mechanism": {**TREE, "epsilon": 2.0, "clusters": [500]}}, "job.yaml")
    assert config.output.shuffle is not None
    told = faults({**words, "mechanism": {**TREE, "epsilon": 0.1, "clusters": [500]}})
    assert any(
        "output.shuffle.epsilon = 0.5: is not below 0.3, the loss of a record's own draws" in one for one in told
    )


def test_a_shuffled_release_shows_no_edits_and_gates_its_table():
    output = {"path": "/lake/out", "format": "delta", "public_only": False, "shuffle": {"epsilon": 0.5, "delta": 1e-8}}
    ledger, source = {"path": "/lake/ledger"}, {**base()["input"], "format": "delta"}
    settings = shuffled(output=output, ledger=ledger, input=source)
    config = parse_config(settings, "job.yaml")
    assert not {"edited", "kept_changed", "withdrawn"} & set(config.shown)
    assert config.rules.table_epsilon == 0.5
    budget = {"unit": "pure", "relation": "any_text", "record": 10.0, "on_exceeded": "keep_last"}
    told = faults({**settings, "budgets": budget})
    assert any("keep_last marks rows of edited records" in fault for fault in told)
    told = faults(released(gate={"table_epsilon": 1.0}))
    assert any("gate.table_epsilon = 1: is of a shuffled table" in fault for fault in told)


@pytest.mark.parametrize(
    ("stream", "source", "words"),
    [
        ({}, {}, "stream: set exactly one of stream.path and stream.table."),
        ({"path": "/lake/a", "table": "raw.events"}, {}, "stream: set exactly one of stream.path and stream.table."),
        ({"path": "/lake/in/"}, {}, "stream.path = /lake/in/: is input.path"),
        ({"path": "/lake/a"}, {"path": None, "format": None, "table": "raw.tickets"}, "input.path: is required with"),
        ({"path": "/lake/a"}, {"version": 3}, "stream: adds versions to the input"),
        ({"path": "/lake/a", "max_files": 0}, {}, "stream.max_files = 0: should be greater than or equal to 1"),
    ],
)
def test_a_stream_has_one_source_and_a_place_to_land(stream, source, words):
    parse_config(released(source), "job.yaml")
    (told,) = faults(released(source, stream={"checkpoint": "/lake/checkpoint", **stream}))
    assert words in told


def test_settings_can_be_overridden(tmp_path: Path):
    lists = ("spark.options={a.b: c}", "input.keep=[]", "output.partition_by=[]")
    config = load(tmp_path, "mechanism.epsilon=2.5", "text={profile: readable}", *lists)
    assert config.mechanism.epsilon == 2.5
    assert config.policy.relation is Relation.SAME_SKELETON
    assert config.spark.options == {"a.b": "c"}
    assert config.input.keep == []
    for override in ("mechanism.epsilon", "=3", "release.name=x", "text.n_max=[1", "mechanism.epsilon=0"):
        with pytest.raises(ConfigError):
            load(tmp_path, override)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("release: 12", "release = 12: should be a valid string. Write it in quotes."),
        ("text.n_max: 012", "text.n_max = 012: should be a valid integer. Write its digits alone"),
        ("mechanism.epsilon: 12:30", "mechanism.epsilon = 12:30: should be a valid number"),
        ("mechanism.public: yes", "mechanism.public = yes: only `public: true` can be used"),
        ("input.keep: [no, 012, true]", "input.keep.2 = true: should be a valid string"),
        ("input.keep: day", "input.keep = day: should be a list, such as [one, two]."),
        ("key: wordveil.key", "key: should be a mapping, such as {key: value}."),
    ],
)
def test_yaml_value_is_shown_as_it_is_written(tmp_path: Path, setting, words):
    with pytest.raises(ConfigError) as error:
        load(tmp_path, setting.replace(": ", "=", 1))
    assert f"  - {words}" in str(error.value)


def test_yaml_words_and_times_are_text(tmp_path: Path):
    file = tmp_path / "job.yaml"
    columns = "{id: no, text: 012, author: on, keep: [yes, 2026-11-20, 1:30, 1e3]}"
    file.write_text(yaml.safe_dump({key: value for key, value in base().items() if key != "input"}))
    section = f"input={columns[:-1]}, path: lake, max_bytes: 12}}"
    config = load_config(file, [section, "output.partition_by=[]"])
    read = config.input
    assert [read.id, read.text, read.author, *read.keep] == ["no", "012", "on", "yes", "2026-11-20", "1:30", "1e3"]
    assert read.max_bytes == 12


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("input: {}\nrelease: a\nrelease: b\n", "line 3: the key 'release' is given more than once"),
        ("input: &itself\n  keep: [*itself]\n", "line 1: found unconstructable recursive node"),
        (None, "No such file"),
        ("a: [1", "YAML"),
        ("- 1\n", "a configuration is a mapping"),
        ("a: \x00", "YAML"),
    ],
)
def test_unreadable_files_are_named(tmp_path: Path, text, words):
    file = tmp_path / "job.yaml"
    if text:
        file.write_text(text)
    with pytest.raises(ConfigError, match=r"job\.yaml") as error:
        load_config(file)
    assert words in str(error.value)


@pytest.mark.parametrize("path", sorted((ROOT / "conf").glob("*.yaml")), ids=lambda path: path.name)
def test_the_shipped_configurations_are_sound(path: Path):
    assert isinstance(load_config(path), Config)


@pytest.mark.parametrize("path", sorted((ROOT / "conf" / "mechanisms").glob("*.yaml")), ids=lambda path: path.name)
def test_the_shipped_mechanisms_are_sound(path: Path):
    settings = {**base(), **yaml.safe_load(path.read_text())}
    name = {"tem": "exponential", "hyperbolic-exponential": "exponential"}.get(path.stem, path.stem)
    if name.startswith("hyperbolic"):
        assert faults(settings) == [fault for fault in faults(settings) if fault.startswith("text.length = pad")]
        settings["text"] = {"length": "as_is"}
    assert parse_config(settings, path.name).mechanism.name == name


def test_settings_that_only_change_speed_enter_no_fingerprint():
    plain = parse_config(base(), "job.yaml")
    assert (plain.policy.relation, plain.mechanism.search, plain.build_missing) == (Relation.ANY_TEXT, "exact", False)
    fast = parse_config({**base(), "spark": {"master": "local[7]", "options": {"x": "y"}}}, "job.yaml")
    assert plain.policy.fingerprint == fast.policy.fingerprint
    assert plain.recipe("d") == fast.recipe("d")


@pytest.mark.parametrize(("name", "kind"), [*CHOICES.items(), ("profile", Profile)])
def test_choices_of_a_text_policy_are_all_in_the_configuration(name, kind):
    for choice in kind:
        assert getattr(TextSection(**{name: str(choice)}), name) is choice
    allowed = ", ".join(f"'{choice}'" for choice in kind)
    wrong = faults(changed(f"text.{name}", f"{next(iter(kind))}x"))
    assert any(fault.startswith(f"text.{name} = ") for fault in wrong)
    listed = f"allowed: {' or '.join(allowed.rsplit(', ', 1))}. Did you mean "
    assert any(listed in fault for fault in wrong), wrong


def test_a_release_has_a_public_table_and_no_public_output():
    output = {"path": "/lake/out", "public_only": True}
    assert parse_config(changed("output", output), "job.yaml").output.public_only
    settings = released(output={**output, "format": "delta"})
    (told,) = [fault for fault in faults(settings) if fault.startswith("output.public_only")]
    assert "readers of a release have its public table" in told
