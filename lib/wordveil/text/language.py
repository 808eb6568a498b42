"""Identification of a text's language, and the settings of a policy that depend on it.

A text is of another language than the policy's if some language is at least :data:`MARGIN` times as probable; a text
too short to identify, such as a name, counts as the policy's language. py3langid identifies 140 languages by byte
sequences (Lui and Baldwin 2012, langid.py), and needs NumPy alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from wordveil.arrays import Bool
from wordveil.errors import PlatformError
from wordveil.text.choices import OtherLanguage, TokeniserKind, UnknownWords

if TYPE_CHECKING:
    from wordveil.text.draft import DraftPolicy

OTHER_REFUSED = "other_language"
UNKNOWN_SHARE_REFUSED = "too_many_unknown_words"
MARGIN = 20.0
"""Ratio by which another language must be more probable, measured by research/benchmarks/languages.py."""
_LONGEST = 1000
"""Number of characters of a text by which its language is identified."""

LANGUAGES = frozenset(
    """
    aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo es
    et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki
    kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no
    nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te
    tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
    """.split()  # noqa: SIM905 - codes are easier to read than a list of strings
)
"""Codes of ISO 639-1."""
IDENTIFIED = frozenset(
    """
    af am an ar as az ba be bg bn br bs ca cs cy da de dz el en eo es et eu fa fi fo fr fy ga gd gl gu ha he hi hr ht hu
    hy id ig is it ja jv ka kk km kn ko ku ky la lb lg ln lo lt lv mg mk ml mn mr ms mt my ne nl nn no oc om or pa pl ps
    pt qu ro ru rw sa se si sk sl sn so sq sr st sv sw ta te tg th tk tl tr tt ug uk ur uz vi vo wa xh yo zh zu
    """.split()  # noqa: SIM905 - codes are easier to read than a list of strings
)
"""Languages of ISO 639-1 that the identifier supports; a test compares them with its list."""


class OptionalPackages(NamedTuple):
    """Packages that one setting of a policy needs, by the names under which they are installed, and their extra."""

    names: tuple[str, ...]
    extra: str


IDENTIFIER = OptionalPackages(("py3langid",), "languages")
SEGMENTERS = {
    TokeniserKind.CHINESE: OptionalPackages(("rjieba",), "chinese"),
    TokeniserKind.JAPANESE: OptionalPackages(("SudachiPy", "SudachiDict-small"), "japanese"),
}
"""Packages that cut a language into words."""
_LANGUAGE_OF = {TokeniserKind.CHINESE: "zh", TokeniserKind.JAPANESE: "ja"}


def list_needed(policy: DraftPolicy) -> dict[str, OptionalPackages]:
    """List the optional packages that affect a policy's words, by the setting that needs them."""
    needed = {}
    if policy.tokeniser in SEGMENTERS:
        needed["tokeniser"] = SEGMENTERS[TokeniserKind(policy.tokeniser)]
    if policy.other_language in (OtherLanguage.MASK, OtherLanguage.QUARANTINE):
        needed["other_language"] = IDENTIFIER
    return needed


def find_packages(policy: DraftPolicy) -> str | None:
    """Find the needed packages that are installed, with their versions: ``rjieba 0.2.2, py3langid 0.4.0``; or None."""
    names = [name for packages in list_needed(policy).values() for name in packages.names]
    return ", ".join(f"{name} {version}" for name in names if (version := find_version(name))) or None


def find_version(name: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def require_packages(policy: DraftPolicy) -> None:
    """Raise :class:`wordveil.errors.PlatformError` if this machine lacks the versions with which a policy was made.

    Other versions may cut and identify texts differently, and their draws would not be charged.
    """
    for setting, problem in find_missing_packages(policy):
        raise PlatformError(f"text.{setting}: {problem}")
    here = find_packages(policy)
    if here == policy.packages:
        return
    extras = ",".join(dict.fromkeys(packages.extra for packages in list_needed(policy).values()))
    raise PlatformError(
        f"the text policy was made with {policy.packages or 'no package'}, and this machine has {here or 'none'}. "
        f"Install the same versions on every machine: pip install 'wordveil[{extras}]'."
    )


def find_language_faults(policy: DraftPolicy) -> Iterator[tuple[str, str]]:
    """List the settings of languages that contradict each other, or another setting."""
    if policy.language not in LANGUAGES:
        yield "language", "is not a code of ISO 639-1, such as en, de or ja."
    elif policy.other_language != OtherLanguage.RELEASE and policy.language not in IDENTIFIED:
        problem = f"{policy.language} cannot be identified. Set other_language: release, or choose another language."
        yield "language", problem
    wanted = _LANGUAGE_OF.get(policy.tokeniser)
    if wanted is not None and policy.language != wanted:
        yield "tokeniser", f"{policy.tokeniser} needs language: {wanted}. Set it, or choose another tokeniser."
    if policy.other_language == OtherLanguage.MASK and policy.unknown != UnknownWords.MASK:
        problem = f"mask hides all words as unknown ones, which contradicts unknown: {policy.unknown}. Use quarantine."
        yield "other_language", problem
    if (share := policy.max_unknown_share) is not None and not 0 <= share < 1:
        yield "max_unknown_share", "is a share of a record's words: at least 0, and below 1."
    if share is not None and policy.unknown == UnknownWords.QUARANTINE:
        problem = "has no meaning with unknown: quarantine, which refuses a record for one unknown word. Remove it."
        yield "max_unknown_share", problem


def find_missing_packages(policy: DraftPolicy) -> Iterator[tuple[str, str]]:
    """List the settings that need a package which is not installed here."""
    for setting, packages in list_needed(policy).items():
        if missing := [name for name in packages.names if find_version(name) is None]:
            problem = f"{getattr(policy, setting)} needs {' and '.join(missing)}, which Python does not have here."
            yield setting, f"{problem} Run `pip install 'wordveil[{packages.extra}]'` on every machine."


@lru_cache(maxsize=1)
def _load_model() -> Any:
    """Load the identifier: an own instance, which the settings of other code do not reach."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def is_other(text: str, language: str) -> bool:
    """Return whether a text is of another language than ``language``."""
    ranked: list[tuple[str, float]] = _load_model().rank(text[:_LONGEST])
    own = next(probability for label, probability in ranked if label == language)
    return ranked[0][1] > MARGIN * own


def find_other(texts: pa.StringArray, language: str, named: Sequence[str | None] | None = None) -> Bool:
    """Find the texts of another language than ``language``, one of :data:`IDENTIFIED`: bool ``(records,)``.

    ``texts``: string array without nulls, valid UTF-8. ``named``: the language that each record names, such as ``de``
    or ``en-GB``; it decides unless it is None or empty.
    """
    names = [None] * len(texts) if named is None else [_first_part(name) for name in named]
    return np.array(
        [
            is_other(text, language) if name is None else name != language
            for text, name in zip(texts.to_pylist(), names, strict=True)
        ],
        np.bool_,
    )


def _first_part(name: str | None) -> str | None:
    """Return the language of a tag such as ``en-GB`` or ``pt_BR``, in lower case, or None."""
    return (name or "").strip().lower().replace("_", "-").partition("-")[0] or None
