"""Templates of pages for people. Each page is one file without external resources."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from wordveil.report.values import show_value
from wordveil.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

# Facts that readers copy: shown in full and in a monospaced font.
_WHOLE = (
    *("bundle", "fingerprint", "metric", "rules"),
    *("mechanism fingerprint", "policy fingerprint", "key fingerprint", "settings digest"),
)


@cache
def _load_templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("wordveil", "data/pages"),
        autoescape=True,
        finalize=_show,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _show(value: Any) -> Any:
    """Escape characters that act on a page, such as changes of direction, in texts but not in templates' output."""
    return show_value(value, keep="\n\t") if type(value) is str else value


def render_page(template: str, **values: Any) -> str:
    """Render a page with its time and version in the footer, escaped: names come from foreign tables."""
    made = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return _load_templates().get_template(template).render(version=__version__, made=made, whole=_WHOLE, **values)
