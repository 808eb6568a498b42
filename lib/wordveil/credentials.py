"""Detection and hiding of credentials in paths, URLs and options.

Configurations and errors are stored and shown. So no setting may hold a credential
(:mod:`wordveil.config.credential_checks`), and :mod:`wordveil.errors` passes every message through this module.
Credentials are recognised by their form: a secret without a name or a URL looks like any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

HIDDEN = "***"
"""Placeholder for a credential."""

# In these schemes a bucket follows, which has no port and no users.
_BUCKETS = frozenset({"s3", "s3a", "s3n", "gs", "oss", "cosn", "obs"})
# In these, a container precedes the @, or the file system of a credential store.
_CONTAINERS = frozenset({"abfs", "abfss", "wasb", "wasbs", "jceks", "localjceks", "bcfks"})
_STORAGE = "|".join([*_BUCKETS, "abfss?", "wasbs?", "hdfs", "viewfs", "s?webhdfs", "adl", "https?", "s?ftp"])
_URI = re.compile(
    rf"""
      (?P<jdbc> jdbc: (?: [\w+-]{{1,30}} : ){{0,4}}? )?
      (?: (?<![\w.+-]) (?P<storage> {_STORAGE}) : (?P<any> [/\\]*)
        | (?<![\w.+-]) (?P<other> [a-z][a-z0-9.+-]{{1,40}}) : (?P<some> [/\\]+)
        | (?: ^ | (?<= [\s='"(] ) ) (?P<none> //) (?= [^/] )
      )
      (?P<rest> [^\s'"<>`]+ )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_HOST = r"(?:[^:,]*|\[[^\]]*\])(?::\d*)?"
_HOSTS = re.compile(rf"{_HOST}(?:,{_HOST})*[:.,;)]*")
_ORACLE = re.compile(r"jdbc:oracle:\w+:(?P<secret>[^@/\s]{1,200}/\S{0,1000})@", re.IGNORECASE)

_SECRET = re.compile(
    r"passw|passphrase|secret|credential|(?:^|[^a-z])pwd|token(?!s|i[sz]e)|fs\.azure\.sas\."
    r"|(?:access|account|private|api|encryption|shared|storage|master|sas|signing|subscription)[._-]?key",
    re.IGNORECASE,
)
_SECRET_PART = re.compile(r"sig|sas|pw|pass|pat|jwt|auth|authorization|(?:.*[-_])?signature", re.IGNORECASE)
# Such a name has a secret's location, or its kind.
_REFERENCE = re.compile(
    r"(?:file|path|providers?|type|id|enabled?|class|location|ur[li]|endpoint|regex|alias|format|algorithm|bits|size"
    r"|length)(?:\.[\w-]+\.(?:dfs|blob)\.core\.windows\.net)?$"
    r"|^spark\.kubernetes\.(?:driver|executor)\.(?:secrets|secretkeyref)\.",
    re.IGNORECASE,
)

# After a slash a pair is a directory of a table's partition, such as ds=2026-11-20, unless it is in a JDBC URL.
_BEFORE = r"(?P<before>^|[?&;,:#|(){}\[\]\s'\"])"
_PAIR = re.compile(rf"{_BEFORE}(?P<name>[\w.-]{{1,200}})\s*=\s*")
_JDBC_PAIR = re.compile(rf"{_BEFORE[:-1]}|/)(?P<name>[\w.-]{{1,200}})\s*=\s*")
# Our own messages write a space before the equals sign of a setting, whose value is no secret.
_TIGHT_PAIR = re.compile(rf"{_BEFORE}(?P<name>[\w.-]{{1,200}})=(?=\S)")
_SECRET_TEXT = re.compile(r"['\"]?([^\s'\"`]*)")
_ESCAPED = re.compile(r"(?<![^\s'\"])[^\s'\"%]*%[0-9A-Fa-f]{2}[^\s'\"]*")
_SHOWN_PAIR = re.compile(rf"{_BEFORE}(?P<name>[\w.-]{{1,200}})['\"]?\s*[=:]\s*")


_Credential = tuple[int, int, str]
"""Credential in a text: its beginning, its end, and what it is."""


def is_secret_name(name: str) -> bool:
    """Return whether a setting or parameter of this name holds a secret, instead of only its location."""
    is_secret = _SECRET.search(name) or _SECRET_PART.fullmatch(re.split(r"[._]", name)[-1])
    return bool(is_secret) and _REFERENCE.search(name) is None


def is_secret_value(value: object) -> bool:
    """Return whether a value can be a secret at all: it is neither empty nor a switch."""
    return value is not None and str(value).strip().rstrip(":.,;)").lower() not in ("", "true", "false", HIDDEN)


def find_credential(value: str) -> str:
    """Describe the part of a setting's value that is a credential, without showing it; empty if none is."""
    pairs = _JDBC_PAIR if value.lstrip().lower().startswith("jdbc:") else _PAIR
    return next((what for text in _decodings(value) for _, _, what in _find(text, pairs)), "")


def hide_credentials(text: str) -> str:
    """Remove the credentials from a sentence, or any other text."""
    hidden = _replace(text, _find(text, _TIGHT_PAIR))
    return _ESCAPED.sub(lambda match: HIDDEN if find_credential(match[0]) else match[0], hidden)


def hide_in_value(value: object) -> str:
    """Convert a setting's value to text without credentials. If the end of one is unclear, the rest is hidden too."""
    text = str(_hide_nested(value))
    # The secret of a pair may contain any character, and one before an @ may contain spaces.
    hidden = _replace(text, ((start, len(text), what) for start, _, what in _find_pairs(text, _SHOWN_PAIR)))
    hidden = _replace(hidden, _find_user_info(hidden))
    return HIDDEN if find_credential(hidden) or (hidden != text and re.search(r"\s.*@", hidden)) else hidden


def _hide_nested(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            hide_in_value(name): HIDDEN if is_secret_name(str(name)) else _hide_nested(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_hide_nested(inner) for inner in value]
    return value


def _decodings(text: str) -> Iterator[str]:
    """Yield the text, then with its percent escapes decoded, and the escapes in those."""
    previous = ""
    for _ in range(5):
        yield text
        previous, text = text, unquote(text, errors="replace")
        if text == previous:
            return


def _find(text: str, pairs: re.Pattern[str]) -> Iterator[_Credential]:
    yield from _find_user_info(text)
    yield from _find_pairs(text, pairs)


def _find_pairs(text: str, pattern: re.Pattern[str]) -> Iterator[_Credential]:
    for match in pattern.finditer(text):
        secret = _SECRET_TEXT.match(text, match.end())
        assert secret is not None, "it may be empty"
        name = match["name"]
        is_secret = is_secret_name(name) or (match["before"] in ("?", "&") and name.lower() == "key")
        if is_secret and is_secret_value(re.split("[&;]", secret[1])[0]):
            yield (secret.start(1), secret.end(1), f"the value of {name}")


def _find_user_info(text: str) -> Iterator[_Credential]:
    """Yield the part before the @ of a URI, unless it is a container or the user of a database."""
    for match in _ORACLE.finditer(text):
        yield (match.start("secret"), match.end("secret"), "the password before the @")
    for match in _URI.finditer(text):
        scheme = (match["storage"] or match["other"] or "").lower()
        slashes = match["any"] or match["some"] or match["none"] or ""
        start, rest = match.start("rest"), match["rest"]
        host = re.split(r"[/\\?#;]" if match["jdbc"] else r"[/\\?#]", rest, maxsplit=1)[0]
        user, at, _ = host.rpartition("@")
        # A password may contain an @ and a slash: all up to the last @ is hidden.
        whole = rest.rfind("@") if "@" in rest else len(rest)
        if at and ":" in unquote(user) and scheme != "file":
            yield (start, start + whole, "the password before the @")
        elif at and user not in ("", HIDDEN) and not match["jdbc"] and scheme not in _CONTAINERS:
            if len(slashes) == 2 or scheme in _BUCKETS:
                yield (start, start + len(user), "the user before the @")
        elif not at and (_has_no_port(host, rest) or (scheme in _BUCKETS and ":" in host.rstrip(":.,;)"))):
            yield (start, start + whole, "the password before the @")


def _has_no_port(host: str, rest: str) -> bool:
    """Return whether a colon in a seeming host does not begin a port, and an @ follows somewhere."""
    return "@" in unquote(rest) and _HOSTS.fullmatch(host) is None


def _replace(text: str, credentials: Iterable[_Credential]) -> str:
    shown, end = "", 0
    for start, stop, _ in sorted(credentials, key=lambda credential: credential[0]):
        if stop > end:
            shown += text[end : max(start, end)] + (HIDDEN if start >= end else "")
            end = stop
    return shown + text[end:]
