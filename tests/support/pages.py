"""Pages as tests read them: their elements, and what a reader sees."""

from __future__ import annotations

import re
from html.parser import HTMLParser

EVIL = "<script>alert('x')</script>"
ESCAPED = "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"


class Elements(HTMLParser):
    """The elements of a page: their names and attributes, and those that are not closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def count(self, tag: str, name: str = "") -> int:
        classes = [(attributes.get("class") or "").split() for found, attributes in self.tags if found == tag]
        return sum(not name or name in one for one in classes)


_LOADS = {"script", "link", "img", "iframe", "object", "embed", "form", "base", "source", "a", "use", "image"}


def check_alone(page: str) -> Elements:
    """Check that a page is well formed and loads nothing; return its elements."""
    elements = Elements(page)
    assert (elements.open, elements.wrong) == ([], [])
    assert not {tag for tag, _ in elements.tags} & _LOADS
    attributes = {name for _, given in elements.tags for name in given}
    assert not {one for one in attributes if one.startswith("on") or one in ("src", "href", "srcset")}
    assert not re.search(r"@import|url\(|https?:|//[a-z]", page)
    assert "default-src 'none'" in page
    return elements


def read_text(page: str) -> str:
    return " ".join(re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL).split())
