"""A copy of a configuration file with another epsilon, and everything else as it was written."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path

import yaml

from wordveil.config.load import load_config, parse_config
from wordveil.config.template import refuse_existing, write_draft
from wordveil.config.yaml_file import parse_yaml, read_yaml
from wordveil.errors import ConfigError, usage_error

KEY = "mechanism.epsilon"
_OPTION = "--write"
_SECTION, _NAME = KEY.split(".")
_BYTE_ORDER_MARK = "\ufeff"


def check_copy(source: Path, target: Path) -> None:
    """Check that a copy of the configuration file ``source`` can be written to ``target``, and would mean the same.

    Raises :class:`OutputExistsError` where ``target`` exists, and :class:`ConfigError` where its directory is missing
    or is not that of ``source``, from which relative paths are taken.
    """
    refuse_existing(target, _OPTION)
    if not target.parent.is_dir():
        raise _refuse(target, "there is no such directory. Make it, or name another file.")
    if source.parent.resolve() != target.parent.resolve():
        problem = (
            f"lies in another directory than {source}, and relative paths of a configuration are taken from its own. "
            "Name a file beside it, and move it with what it names."
        )
        raise _refuse(target, problem)


def write_copy(source: Path, target: Path, epsilon: float, comment: Sequence[str]) -> None:
    """Write a copy of a configuration file that differs in ``mechanism.epsilon`` alone, below the lines of ``comment``.

    Comments, order and layout stay. The copy is parsed before it is written: every other setting must be as in the
    source. Raises as :func:`check_copy`, and :class:`ConfigError` where the copy cannot be written, or the file's
    layout does not let this value be changed alone.
    """
    check_copy(source, target)
    content = replace_epsilon(source.read_text("utf-8"), epsilon)
    mark = _BYTE_ORDER_MARK if content.startswith(_BYTE_ORDER_MARK) else ""
    lines = "".join(f"# {line}".rstrip() + "\n" for line in comment)
    content = mark + lines + content.removeprefix(mark)
    _verify(source, target, content, epsilon)
    write_draft(target, content, _OPTION)


def replace_epsilon(content: str, epsilon: float) -> str:
    """The text of a configuration with ``mechanism.epsilon`` set: its value replaced, or the key put first into the
    section. Raises :class:`ConfigError` where there is no such section.
    """
    section = _find(yaml.compose(content, Loader=yaml.SafeLoader), _SECTION)
    if not isinstance(section, yaml.MappingNode) or not section.value:
        raise usage_error(_SECTION, "", "is no section of the file. Write it there first.")
    value = _find(section, _NAME)
    shown = show_epsilon(epsilon)
    if value is not None:
        # An empty value has no width: it needs a space after its colon.
        start, end = value.start_mark.index, value.end_mark.index
        return f"{content[:start]}{shown if end > start else f' {shown}'}{content[end:]}"
    first = section.value[0][0].start_mark
    between = ", " if section.flow_style else "\n" + " " * first.column
    return f"{content[: first.index]}{_NAME}: {shown}{between}{content[first.index :]}"


def show_epsilon(epsilon: float) -> str:
    """An epsilon as YAML reads it back: PyYAML takes ``1e-05`` for text."""
    return yaml.safe_dump(float(epsilon)).split()[0]


def _find(node: yaml.Node | None, name: str) -> yaml.Node | None:
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for key, value in pairs if key.value == name), None)


def _verify(source: Path, target: Path, content: str, epsilon: float) -> None:
    """Read what will be written. Raises :class:`ConfigError` where it would differ in more than epsilon."""
    expected, written = copy.deepcopy(read_yaml(source)), parse_yaml(content, str(target))
    expected[_SECTION] = {**expected[_SECTION], _NAME: epsilon}
    if written != expected:
        problem = f"{KEY} cannot be changed alone in this layout, as with an anchor. Write the value there by hand."
        raise _refuse(target, problem)
    if parse_config(written, str(target), directory=target.parent) != load_config(
        source, [f"{KEY}={show_epsilon(epsilon)}"]
    ):
        raise _refuse(target, f"would mean something else than {source}. Write the value there by hand.")


def _refuse(target: Path, problem: str) -> ConfigError:
    return usage_error(_OPTION, str(target), problem)
