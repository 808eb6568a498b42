"""Parameters of input.where: those of the command line are just those that the condition uses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordveil.config.arguments import parse_run_id
from wordveil.errors import ConfigError
from wordveil.input.parameters import check_params, find_parameter_names, join_conditions, parse_params


def test_values_are_strings_with_whatever_in_them():
    values = {"ds": "2026-11-20", "x": "a=b", "empty": "", "quoted": "' or 1=1 --"}
    assert parse_params([f"{name}={value}" for name, value in values.items()]) == values


def test_a_bad_or_repeated_name_is_a_fault():
    for pair in ("ds", "=x", "1a=x", "a b=x", "a-b=x", ":a=x", "é=x"):
        with pytest.raises(ConfigError, match=r"--param.*should be NAME=VALUE"):
            parse_params([pair])
    with pytest.raises(ConfigError, match="2 faults"):
        parse_params(["a=1", "a=2", "="])


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ("ds = :ds and x > :least or ds = :ds", ["ds", "least"]),
        ("a = ':no' and b = \":no\" and `:no` = :yes", ["yes"]),
        ("a = 'it''s :no' and b = '\\':no' and c = :yes", ["yes"]),
        ("a = 1 -- :no\nand b = :yes /* :no \n :no */", ["yes"]),
        ("a::int = :a and b:::c = 1", ["a", "c"]),
        ("a = : b", []),
        ("a = r'\\' or b = :yes -- '", ["yes"]),
        ("/* /* ' */ ' */ b = :yes", ["yes"]),
        ("/* /* */ b = :yes", ["yes"]),
        ("a = 'x' -- goes on \\\n :no\n and b = :yes -- '\r and c = :too", ["yes", "too"]),
    ],
)
def test_parameters_are_found_outside_of_strings_and_comments(condition, names):
    assert find_parameter_names(condition) == names


@given(st.text(alphabet="'\"`\\-/*:.\n\rbx (r${"))
def test_parameters_of_any_string_are_names(condition):
    assert all(name.isidentifier() for name in find_parameter_names(condition))


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


def test_just_the_parameters_that_are_used_have_values():
    check_params("a = :x", {"x": "1"})
    check_params(None, {})
    with pytest.raises(ConfigError) as error:
        check_params("a = :ds and b = :zone", {"dss": "secret"})
    assert [str(fault) for fault in error.value.faults] == [
        "input.where = :ds: has no value. Add --param ds=... to the command.",
        "input.where = :zone: has no value. Add --param zone=... to the command.",
        "--param = dss: input.where does not use :dss. Did you mean ds?",
    ]
    with pytest.raises(ConfigError, match=r"input\.where does not use :x\. Remove it"):
        check_params(None, {"x": "1"})


def test_a_run_id_is_safe_in_file_names():
    for name in ("", "../x", "a/b", ".hidden", "x" * 201, "with space"):
        with pytest.raises(ConfigError, match=r"run_id.*: give 1 to 200 letters"):
            parse_run_id(name)
    scheduled = "scheduled__2026-11-20T00:00:00+00:00"
    assert parse_run_id(scheduled) == scheduled
