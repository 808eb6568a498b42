"""Hooks of mkdocs: the site has the same files in the same places as the repository, so that links mean the same.

Added to the files of docs/ are those of ADDED, and a page that shows the configurations of conf/. A link to
anything else of the repository becomes its text: the site does not have it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
ADDED = (
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "scripts/site.css", "research/README.md"),
    *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "research" / "docs").glob("*.md"))),
)
CONF = "conf/index.md"
LANGUAGES = {".yaml": "yaml", ".conf": "properties"}
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Place the files of docs/ under docs/, and add the others."""
    for file in [file for file in files if file.src_dir == config.docs_dir]:
        files.remove(file)
        files.append(_file(f"docs/{file.src_uri}", config))
    for name in ADDED:
        files.append(_file(name, config))
    files.append(File.generated(config, CONF, content=_configurations()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Lead links to conf/ to its page, and drop those to files that the site does not have."""
    folder = posixpath.dirname(page.file.src_uri)

    def replace(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link["target"]))
        if re.match(r"[a-z]+:", link["target"]) or files.get_file_from_path(target) or target.endswith(".md"):
            return link[0]
        if target.split("/")[0] == "conf":
            anchor = f"#{_anchor(target)}" if (ROOT / target).is_file() else ""
            return f"[{link['text']}]({posixpath.relpath(CONF, folder or '.')}{anchor})"
        return link["text"]

    return indent_lists(LINK.sub(replace, markdown))


def indent_lists(markdown: str) -> str:
    """Write lists as Python-Markdown wants them: what belongs to an item is indented by four columns, and a blank line
    follows an item of several blocks. GitHub asks for less.
    """
    lines: list[str] = []
    width, has_blocks, fenced = 0, False, False
    for line in markdown.split("\n"):
        fenced ^= line.lstrip().startswith("```")
        if not fenced and (item := re.match(r"(?:\d+\.|[-*]) +", line)):
            lines += [""] if width and has_blocks and lines[-1] else []
            width, has_blocks = len(item[0]), False
            lines.append(line)
        elif width and line.startswith(" " * width):
            has_blocks |= not lines[-1]
            lines.append(" " * (4 - width) + line)
        else:
            width = 0 if line.strip() else width
            lines.append(line)
    return "\n".join(lines)


def _file(name: str, config: MkDocsConfig) -> File:
    return File(name, src_dir=str(ROOT), dest_dir=config.site_dir, use_directory_urls=config.use_directory_urls)


def _configurations() -> str:
    """Return a page with each file of conf/ as a block of code."""
    parts = ["# Configurations to copy", "`wordveil docs conf/nightly.yaml > job.yaml` writes one of them to a file."]
    files = (path for path in (ROOT / "conf").rglob("*") if path.is_file())
    for path in sorted(files, key=lambda path: (len(path.parts), path)):
        language = LANGUAGES.get(path.suffix, "dockerfile")
        parts += [f"## {path.relative_to(ROOT).as_posix()}", f"```{language}\n{path.read_text('utf-8')}```"]
    return "\n\n".join(parts) + "\n"


def _anchor(name: str) -> str:
    """Return the anchor of a heading that is a file's name."""
    return re.sub(r"[^\w-]", "", name.lower())
