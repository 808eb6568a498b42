"""Gate rules, their figures and kinds; a gate that the configuration cannot pass is a fault of it."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace

import pytest

from support import configs
from wordveil.config.load import parse_config
from wordveil.config.schema import GateSection
from wordveil.errors import ConfigError
from wordveil.privacy.relations import Relation
from wordveil.records.sanitiser import RecordSettings
from wordveil.release.rules import RULES, GateResult, GateRules, Kind, Measured, evaluate

FIGURES = Measured(
    relation=Relation.SAME_LENGTH,
    exposes=("length", "presence", "column:ds"),
    epsilon_pure=100.0,
    epsilon_bound=100.0,
    records=1000,
    released=800,
    quarantined=200,
    empty=80,
    distinct_words=50,
    stale=40,
    refused=45,
    asked=900,
    words=4000,
    unknown=400,
    unchanged=1000,
    attack_to_chance=2.5,
    linked=0.4,
    table_epsilon=0.5,
    audited=("bundle",),
)
# By rule: a bound that the figures just meet, one that they just miss, and the figures that it needs.
CASES = {
    "relation": (Relation.SAME_LENGTH, Relation.ANY_TEXT, ["relation"]),
    "exposes": (("column:ds", "gate", "length", "presence"), ("length", "presence"), ["exposes"]),
    "epsilon_pure": (100.0, math.nextafter(100.0, 0), ["epsilon_pure"]),
    "epsilon_bound": (100.0, math.nextafter(100.0, 0), ["epsilon_bound"]),
    "min_records": (800, 801, ["released"]),
    "max_empty_rate": (0.1, math.nextafter(0.1, 0), ["empty", "released"]),
    "min_distinct_words": (50, 51, ["distinct_words"]),
    "max_stale_rate": (0.05, math.nextafter(0.05, 0), ["stale", "released"]),
    "max_refused_rate": (0.05, math.nextafter(0.05, 0), ["refused", "asked"]),
    "quarantine_rate": (0.2, math.nextafter(0.2, 0), ["quarantined", "records"]),
    "unknown_rate": (0.1, math.nextafter(0.1, 0), ["unknown", "words"]),
    "unchanged_rate": (0.25, math.nextafter(0.25, 0), ["unchanged", "words"]),
    "attack_to_chance": (2.5, math.nextafter(2.5, 0), ["attack_to_chance"]),
    "linked": (0.4, math.nextafter(0.4, 0), ["linked"]),
    "table_epsilon": (0.5, math.nextafter(0.5, 0), ["table_epsilon"]),
    "audited": (("bundle",), ("bundle", "release"), ["audited"]),
}


def gate(name, bound):
    return GateRules(**{name: bound})


def passes(rules, figures=FIGURES):
    return evaluate(rules, figures).passed


def test_rules_config_and_cases_name_the_same():
    names = [field.name for field in fields(GateRules)]
    assert names == list(RULES) == list(CASES) == list(GateSection.model_fields)


def test_kinds_follow_what_a_rule_reads():
    kinds = {kind: {name for name, rule in RULES.items() if rule.kind is kind} for kind in Kind}
    private = {"quarantine_rate", "unknown_rate", "unchanged_rate", "attack_to_chance", "linked"}
    assert kinds[Kind.PRIVATE] == private
    assert kinds[Kind.PUBLIC] == {"relation", "exposes", "epsilon_pure", "epsilon_bound", "audited"}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_passes_at_its_bound_and_fails_beyond(name):
    meets, misses, _ = CASES[name]
    assert passes(gate(name, meets))
    assert not passes(gate(name, misses))
    (result,) = evaluate(gate(name, misses), FIGURES).failures
    assert (result.name, result.kind) == (name, RULES[name].kind)
    rules = gate(name, meets)
    assert bool(rules.private) == (RULES[name].kind is Kind.PRIVATE)
    assert rules.shown == (("gate",) if rules.private else ())


@pytest.mark.parametrize("name", CASES)
def test_a_figure_that_is_missing_or_none_fails_its_rule(name):
    meets, _, figures = CASES[name]
    for figure in figures:
        (failure,) = evaluate(gate(name, meets), replace(FIGURES, **{figure: None})).failures
        assert failure.value is None
    if name not in ("relation", "exposes", "audited"):
        bound = 0 if name.startswith("min_") else 1.0
        for value in (math.nan, -1, *([math.inf] if name.startswith("epsilon") else [])):
            assert not passes(gate(name, bound), replace(FIGURES, **{figures[0]: value})), value


def test_rates_of_nothing_are_zero_and_above_one_fail():
    assert not passes(GateRules(unknown_rate=1.0), replace(FIGURES, unknown=4001))
    nothing = Measured(records=0, released=0, quarantined=0, empty=0, words=0, unknown=0, unchanged=0)
    assert passes(GateRules(quarantine_rate=0.0, unknown_rate=0.0, unchanged_rate=0.0, max_empty_rate=0.0), nothing)
    assert not passes(GateRules(min_records=1), nothing)


def test_nothing_exposed_is_a_rule_and_no_rule_is_none():
    assert not passes(GateRules(exposes=()))
    assert passes(GateRules(exposes=()), replace(FIGURES, exposes=()))
    assert evaluate(GateRules(), Measured()) == GateResult(passed=True, results=())


def test_results_name_failures_and_come_back_from_json():
    everything = GateRules(**{name: case[0] for name, case in CASES.items()})
    for rules in (GateRules(), everything, GateRules(exposes=())):
        result = evaluate(rules, replace(FIGURES, words=None))
        assert GateResult.from_dict(json.loads(json.dumps(result.to_dict()))) == result
    result = evaluate(GateRules(min_records=1, unknown_rate=0.0), FIGURES)
    assert [(one.name, one.passed) for one in result.results] == [("min_records", True), ("unknown_rate", False)]
    assert not result.passed


def test_the_digest_is_of_what_the_rules_say():
    assert GateRules(epsilon_bound=1).digest == GateRules(epsilon_bound=1.0).digest
    assert GateRules(exposes=()).digest != GateRules().digest
    assert GateRules(exposes=("length", "gate")).digest == GateRules(exposes=("gate", "length")).digest
    made = [GateRules(), *(gate(name, bound) for name, case in CASES.items() for bound in case[:2])]
    assert len({rules.digest for rules in made}) == len(made)


SHOWN = ["presence", "edited", "withdrawn", "kept_changed", "column:ds", "gate"]


def job(rules, **text):
    source = {"format": "delta", "id": "ticket", "keep": ["ds"]}
    text = text or {"profile": "strict", "n_max": 64}
    places = {"output": {"path": "out", "format": "delta"}, "ledger": {"path": "ledger"}}
    return configs.settings(source=source, text=text, gate=rules, **places)


def faults(rules, **text):
    return "\n".join(configs.find_faults(job(rules, **text)).values())


def test_a_gate_is_read_from_the_configuration():
    rules = {"relation": "any_text", "exposes": SHOWN, "min_records": 10, "unknown_rate": 1}
    config = parse_config(job(rules), "job.yaml")
    assert config.gate.rules == GateRules(Relation.ANY_TEXT, tuple(SHOWN), min_records=10, unknown_rate=1.0)
    assert parse_config(job({}), "job.yaml").gate.rules == GateRules()
    settings = RecordSettings(config.release, "", config.policy, ("ds",), config.shown)
    assert settings.exposes == ("edited", "gate", "kept_changed", "presence", "withdrawn", "column:ds")
    assert evaluate(config.gate.rules, Measured(exposes=settings.exposes)).results[1].passed


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ({"unknwon_rate": 0.1}, "gate.unknwon_rate: unknown key. Did you mean unknown_rate?"),
        ({"exposes": ["presense"]}, "gate.exposes = presense: is not something that a release can show. Allowed: pres"),
        ({"unknown_rate": 10}, "gate.unknown_rate = 10: should be less than or equal to 1"),
        ({"min_records": -1}, "gate.min_records = -1: should be greater than or equal to 0"),
        ({"linked": -0.1}, "gate.linked = -0.1: should be greater than or equal to 0"),
        ({"epsilon_bound": math.nan}, "gate.epsilon_bound = nan: should be a finite number"),
        ({"attack_to_chance": math.inf}, "gate.attack_to_chance = inf: should be a finite number"),
        ({"audited": ["bundel"]}, "gate.audited.0 = bundel"),
        ({"audited": []}, "gate.audited"),
        (
            {"exposes": ["column:ds", "edited", "kept_changed", "withdrawn"]},
            "gate.exposes: the release also shows presence",
        ),
        ({"exposes": ["pseudonym:"]}, "gate.exposes = pseudonym:: is not something that a release can show."),
        ({"exposes": ["presence"]}, "gate.exposes: the release also shows column:ds, edited, kept_changed, withdrawn"),
        ({"exposes": SHOWN[:-1], "unknown_rate": 0.1}, "gate.exposes: lacks gate, which a gate with private"),
    ],
)
def test_faults_of_a_gate_name_the_rule_and_the_fix(rules, words):
    assert words in faults(rules)


def test_gate_that_no_run_can_pass_is_a_fault():
    for rules, words in (
        ({"relation": "any_text"}, "gate.relation: the bound under text only holds for same_skeleton"),
        ({"epsilon_pure": 1e9}, "gate.epsilon_pure: the bound only holds for same_skeleton"),
    ):
        assert words in faults(rules, profile="readable")
        parse_config(job(rules), "job.yaml")


@pytest.mark.parametrize("rules", [{"min_records": 1}, {"exposes": ["presense"]}])
def test_a_gate_of_a_parquet_output_is_a_fault(rules):
    """It would hold nobody back: a Parquet output is there once it is written."""
    with pytest.raises(ConfigError, match=r"gate: needs output\.format: delta"):
        parse_config({**job(rules), "output": {"path": "out"}, "ledger": None}, "job.yaml")
