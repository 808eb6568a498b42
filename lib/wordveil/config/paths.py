"""Settings that are paths: a relative one is taken from the directory of the configuration's file.

The types of this module mark such settings. A value of theirs is resolved when its section is checked, so that all else
sees absolute paths. Settings that code passes as a mapping have no file: there the working directory counts.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, StringConstraints, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from wordveil.artifacts.ngram_model import DEMO
from wordveil.embeddings.embedding import SHIPPED
from wordveil.input.locations import SCHEME, make_absolute
from wordveil.mechanisms.inputs import ANY, ORDINARY, SENSITIVE, WORDNET

WORDFREQ, STOP_WORDS = "wordfreq:", "stop-words:"
"""Beginnings of the names of lists in packages, which are no paths."""


@dataclass(frozen=True)
class PathSetting:
    """Mark of a setting that is a path, which pydantic follows."""

    is_local: bool = True
    """True if it is on the driver's own file system. A scheme is then a fault."""
    shipped: Collection[str] = ()
    """Names of what comes with the package, which are no paths."""
    prefix: str = ""
    """Beginning of further names that are no paths; empty if there are none."""
    is_written: bool = False
    """True if tables are written there. Hadoop makes no directory whose name has a colon."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Resolve values that have passed the type's own checks."""
        return core_schema.with_info_after_validator_function(self._resolve, handler(source))

    def _resolve(self, value: str, info: ValidationInfo) -> str:
        """Resolve a path.

        The context of the check is the directory of the configuration's file, None if there is no file.
        """
        if value in self.shipped or (self.prefix and value.startswith(self.prefix)):
            return value
        if value.startswith("~"):
            raise PydanticCustomError(
                "home_path",
                "begins with ~, which only a shell reads as a home directory. Write the whole path; ./~ begins a name "
                "that has a ~",
            )
        if self.is_local and SCHEME.match(value):
            raise PydanticCustomError(
                "local_path", "is a path on the driver's own file system. Write it without a scheme"
            )
        path = make_absolute(value, info.context)
        if self.is_written and ":" in re.sub(rf"^{SCHEME.pattern}(/[^/]*)?", "", path):
            raise PydanticCustomError(
                "colon_path",
                "{where} a colon, which Hadoop does not take in a name that it writes. Write a time as "
                "2026-11-20T030000",
                {"where": "has" if ":" in value else f"is {path}, which has"},
            )
        return path


Location = Annotated[str, StringConstraints(min_length=1), PathSetting(is_local=False)]
"""A path, or a URI of another file system. Tables are read by Spark, bundles and public files by pyarrow."""
WrittenLocation = Annotated[str, StringConstraints(min_length=1), PathSetting(is_local=False, is_written=True)]
"""A path or URI where Spark writes tables."""
LocalPath = Annotated[str, StringConstraints(min_length=1), PathSetting()]
"""The path of a file or directory on the driver's own file system."""

EmbeddingPath = Annotated[str, StringConstraints(min_length=1), PathSetting(is_local=False, shipped=tuple(SHIPPED))]
"""The place of an embedding, or the name of one that comes with the package."""
ModelPath = Annotated[str, StringConstraints(min_length=1), PathSetting(is_local=False, shipped=(DEMO,))]
"""The place of the n-gram model or of the pairs, or the name of those that come with the package."""

ClassesPath = Annotated[str, StringConstraints(min_length=1), PathSetting(is_local=False, prefix=STOP_WORDS)]
"""The place of a table, or the stop-words of a language, such as ``stop-words:en``."""
FrequenciesPath = Annotated[str, StringConstraints(min_length=1), PathSetting(is_local=False, prefix=WORDFREQ)]
"""The place of a table, or the name of a list of the package wordfreq, such as ``wordfreq:de``."""
MergePath = Annotated[str, StringConstraints(min_length=1), PathSetting(is_local=False, shipped=(SENSITIVE,))]
"""The place of a table, or ``sensitive``, the list that comes with the package."""
PassagesPath = Annotated[str, StringConstraints(min_length=1), PathSetting(is_local=False, shipped=(WORDNET,))]
"""The place of a file of public texts, or ``wordnet``, those that come with the package."""
WrittenPath = Annotated[str, StringConstraints(min_length=1), PathSetting(is_local=False, shipped=(ORDINARY, ANY))]
"""The place of a list, or what the package's lists say: ``ordinary``; or ``any``."""
