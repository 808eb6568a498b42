"""docs/settings.md is what scripts/settings.py makes of the configuration's models."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from support.repository import ROOT, load_script
from wordveil.config.generators import GeneratorSection
from wordveil.config.load import Config
from wordveil.config.mechanisms import MECHANISM_SECTIONS, EmbeddingTrainingSection, MechanismSection


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_script("scripts/settings.py")


ENTRY = re.compile(r"^- (`\w+`) \((.+?)(?:; (default .+?|\*.+?\*))?\):(?: (.+))?$", re.MULTILINE)


def rows(text: str) -> list[list[str]]:
    """Return the name, values, default and meaning of each entry."""
    return [[part or "" for part in entry.groups()] for entry in ENTRY.finditer(text.replace("\n  ", " "))]


def test_the_page_is_up_to_date(script: ModuleType):
    assert (ROOT / "docs" / "settings.md").read_text("utf-8") == script.make_page(), "run `make settings`"


def test_every_setting_stands_in_its_chapter(script: ModuleType):
    _, *found = re.split(r"^#{2,3} (.+)$", script.make_page(), flags=re.MULTILINE)
    chapters = {name: [row[0].strip("`") for row in rows(text)] for name, text in zip(*[iter(found)] * 2, strict=True)}
    models = {name: model for name, field in Config.model_fields.items() if (model := script.model_of(field))}
    parts = {name: model for name, field in GeneratorSection.model_fields.items() if (model := script.model_of(field))}
    shared, sections = list(MechanismSection.model_fields), MECHANISM_SECTIONS
    assert chapters == {
        "Top level": [name for name in Config.model_fields if name not in {*models, "mechanism"}],
        **{name: list(model.model_fields) for name, model in models.items()},
        "mechanism": shared,
        "training": list(EmbeddingTrainingSection.model_fields),
        **{name: [one for one in model.model_fields if one not in shared] for name, model in sections.items()},
        "generator": list(GeneratorSection.model_fields),
        **{f"generator.{name}": list(model.model_fields) for name, model in parts.items()},
    }


def test_every_setting_is_explained(script: ModuleType):
    page = script.make_page()
    assert [row[0] for row in rows(page) if not row[-1].endswith(".")] == []
    assert re.findall(r"``|:\w+:`|\bNone\b", page) == [], "the reader writes YAML"
