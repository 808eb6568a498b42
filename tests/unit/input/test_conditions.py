"""What a condition on the input reads follows from the configuration alone, and so does what the release says of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordveil.config.load import parse_config
from wordveil.errors import ConfigError
from wordveil.input.conditions import find_exposures, find_reading, join_conditions, tokens
from wordveil.privacy.relations import Exposure, Relation, narrow_relation
from wordveil.records.sanitiser import RecordSettings
from wordveil.text.policy import with_profile

READS = [
    "body like '%x%'",
    "BoDy = 'x'",
    "`BODY` = 'x'",
    "input.body is null",
    "input . `body` is null",
    "day = 'x'and body = 'y'",
    "day = 'it''s' or body = 'x'",
    "day = 'a\\'' or body = 'x'",
    "r'\\' = day or body = 'x' or day = ''",
    'R"\\" = day or body = "x"',
    "day = 'x' /* ' */ or body = 'y' /* ' */",
    "day = 'x' /* /* ' */ ' */ or body = 'y'",
    "day = 'x' -- '\n or body = 'y'",
    "day = 'x' -- '\r or body = 'y'",
    "/* /* */ body = 'x'",
    "\"body\" = 'x'",
    "cast(:p as int) < length(body)",
    "body::int > 3",
]
READS_OTHERS = [
    "day = 'body' and note > 3",
    "day = 'it''s body' or day = '\\' body'",
    "day = r'\\' -- body'",
    "`my body` = 'x' and bodyguard = 1 and `body``` = 2 and _body = 3",
    "note * 2 > 3 and (note) * (note) > 1 and note * -note < tags[1] * .5",
    "day = :body -- the body\n and /* body /* of */ body */ note > 1",
    "day = 'x' -- goes on \\\n body\n and true",
    "identifier = 1 and day::string = 'x'",
    "day is distinct from 'x' and trim(both ' ' from day) = 'x'",
    "day in ('select', 'x') and extract(year from day) = 2026",
]
SAYS_NOT = [
    ("id in (select id from t)", "a subquery"),
    ("exists (FROM t)", "a subquery"),
    ("id in (/* all */ table t)", "a subquery"),
    ("id in ((values ('a')))", "a subquery"),
    ("exists (map a using 's' from t)", "a subquery"),
    ("identifier(:column) = 'x'", "IDENTIFIER"),
    ("IDENTIFIER ('bo' || 'dy') = 'x'", "IDENTIFIER"),
    ("hash(*) = 1", "a * "),
    ("hash(input.*) = 1", "a * "),
    ("hash(DISTINCT *) = 1", "a * "),
    ("hash(note, * except (day)) = 1", "a * "),
    ("struct(note, *) is null", "a * "),
    ("day = '${spark.app.name}'", "${...}"),
]


@pytest.mark.parametrize("condition", READS)
def test_a_condition_that_names_the_text_reads_it(condition):
    assert find_reading(condition, ("body",)) == "names body, the text column"
    assert find_exposures(condition, ("body",)) == ("condition",)


@pytest.mark.parametrize("condition", READS_OTHERS)
def test_a_condition_on_other_columns_does_not(condition):
    assert find_reading(condition, ("body",)) == ""
    assert find_exposures(condition, ("body",)) == find_exposures(None, ("body",)) == ()


@pytest.mark.parametrize(("condition", "words"), SAYS_NOT)
def test_what_may_read_the_text_counts_as_reading_it(condition, words):
    assert words in find_reading(condition, ("body",))


@pytest.mark.parametrize(
    ("column", "condition"),
    [
        ("mail.body", "`mail.body` is null"),
        ("mail.body", "input.`MAIL.body` is null"),
        ("mail.body", "mail.body is null"),
        ("the text", "`the text` = 'x'"),
        ("a``b", "`a````b` = 'x'"),
        ("Größe", "grÖSSe = 'x' or GRÖße = 'y'"),
        ("kilo", "K = '' or \u212aİlo = ''"),  # the sign for Kelvin and a dotted capital, which Java takes for k and i
    ],
)
def test_names_are_compared_as_spark_compares_them(column, condition):
    assert find_reading(condition, (column,)).startswith("names")


PIECES = [
    *(
        (piece, False)
        for piece in ("day", "'body'", "'it''s \\' body'", "r'\\'", "-- ' body `\n", "/* ' body /* ` */ \" */", ":body")
    ),
    *((piece, False) for piece in ("`the body`", "=", "and", "\n", "\r", "note", "2", "(", ")", "'\\\\'", "bodys")),
    *((piece, True) for piece in ("body", "`Body`", '"body"', "input.body", "BODY")),
]


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_a_name_is_found_between_whatever_hides_nothing(pieces):
    condition = " ".join(piece for piece, _ in pieces)
    assert (find_reading(condition, ("body",)) != "") == any(reads for _, reads in pieces)


@given(st.text(alphabet="'\"`\\-/*:.\n\rbx (r${"))
def test_any_string_is_cut_into_pieces(condition):
    for token in tokens(condition):
        assert token.value or token.kind == "name"
    assert isinstance(find_reading(condition, ("b",)), str)


def job(where: str | None, text: dict[str, Any], **sections: Any) -> dict[str, Any]:
    source = {"path": "lake/in", "format": "delta", "id": "ticket", "text": "body", "keep": ["ds"], "where": where}
    return {
        "format_version": 2,
        "release": "support-mail",
        "input": {name: value for name, value in source.items() if value is not None},
        "mechanism": {"name": "laplace", "epsilon": 8.0, "embedding": "demo", "public": True},
        "bundle_store": "bundles",
        "text": text,
        "key": {"env": "WORDVEIL_KEY"},
        "output": {"path": "lake/out", "format": "delta"},
        "ledger": {"path": "lake/ledger"},
        **sections,
    }


STRICT = {"profile": "strict", "n_max": 64}
READABLE = {"profile": "readable"}
PLAIN = {"profile": "strict", "length": "as_is"}
ASKS = "body like '%refund%'"


def faults(settings: dict[str, Any]) -> list[str]:
    with pytest.raises(ConfigError) as error:
        parse_config(settings, "job.yaml")
    return [str(fault) for fault in error.value.faults]


@pytest.mark.parametrize("text", [READABLE, PLAIN])
def test_a_release_says_that_its_condition_reads_the_text(text):
    config = parse_config(job(ASKS, text), "job.yaml")
    settings = RecordSettings(config.release, "", config.policy, ("ds",), config.shown)
    assert "condition" in settings.exposes
    assert settings.relation is config.relation is Relation.SAME_SKELETON
    plain = parse_config(job("ds = 'x'", text), "job.yaml")
    assert "condition" not in plain.shown
    assert plain.relation is plain.policy.relation


@pytest.mark.parametrize("where", [ASKS, "id in (select id from other)", "hash(*) % 2 = 0"])
@pytest.mark.parametrize("text", [STRICT, {"profile": "strict", "length": "sample", "n_max": 8}])
def test_a_policy_for_any_two_texts_refuses_such_a_condition(where, text):
    (fault,) = faults(job(where, text))
    assert fault.startswith(
        f"input.where = {where}: {find_reading(where, ('body',))}. The presence of a record would reveal something"
    )
    assert "Filter on kept columns or in a view of public columns, or use a policy of text.profile: readable" in fault
    parse_config(job("ds = 'x'", text), "job.yaml")


def test_a_wrong_policy_is_named_without_its_condition():
    assert faults(job(ASKS, {"profile": "strict"}))[0].startswith("text.n_max")


def test_a_budget_for_more_pairs_than_the_condition_leaves_is_a_fault():
    budget = {"unit": "pure", "record": 1e6}
    for text, wanted in ((READABLE, "any_text"), (PLAIN, "same_length")):
        (fault,) = faults(job(ASKS, text, budgets={**budget, "relation": wanted}))
        assert fault.startswith(
            f"budgets.relation: {wanted}, but under text and input.where the bound only holds for same_skeleton"
        )
    parse_config(job(ASKS, PLAIN, budgets={**budget, "relation": "same_skeleton"}), "job.yaml")
    parse_config(job(None, PLAIN, budgets={**budget, "relation": "same_length"}), "job.yaml")


def test_a_gate_that_does_not_allow_the_condition_is_a_fault():
    allowed = ["length", "presence", "edited", "withdrawn", "column:ds"]
    (fault,) = faults(job(ASKS, PLAIN, gate={"exposes": allowed}))
    assert fault.startswith("gate.exposes: the release also shows condition. Change text, input.keep or input.where")
    assert "condition" in faults(job(ASKS, PLAIN, gate={"exposes": []}))[0]
    assert faults(job(ASKS, PLAIN, gate={"relation": "same_length"}))[0].startswith(
        "gate.relation: the bound under text and input.where"
    )
    parse_config(job(ASKS, PLAIN, gate={"exposes": [*allowed, "condition"], "relation": "same_skeleton"}), "job.yaml")


def test_no_bound_holds_beyond_texts_that_agree_in_the_condition():
    for relation in Relation:
        assert narrow_relation(relation, [Exposure.CONDITION, "gate"]) is Relation.SAME_SKELETON
        assert narrow_relation(relation, ["gate", "column:condition"]) is relation
    settings = RecordSettings("r", "", with_profile("strict", n_max=8), (), ("condition",))
    assert (settings.relation, settings.policy.relation) == (Relation.SAME_SKELETON, Relation.ANY_TEXT)


def test_joined_conditions_keep_their_own_parameters():
    """Text in quotes and comments is no parameter, and a comment at the end hides nothing of the others."""
    first = "day = :day and note <> ':day' -- :day"
    joined, params = join_conditions(
        [(first, {"day": "d0"}), ("`:day` = :day or :day_0 = 'x'", {"day": "d1", "day_0": ""})]
    )
    assert joined == ("(\nday = :day_0 and note <> ':day' -- :day\n) OR (\n`:day` = :day_1 or :day_0_1 = 'x'\n)")
    assert params == {"day_0": "d0", "day_1": "d1", "day_0_1": ""}
    assert join_conditions([("a = 1", {}), ("", {})]) == ("", {})
    assert join_conditions([]) == ("false", {})
