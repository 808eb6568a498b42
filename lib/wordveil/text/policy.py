"""Text policies: what is hidden, dropped or copied, and what follows from that for the guarantee.

A policy sees no text here; its relation and its exposures follow from its settings alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields

from wordveil.privacy.events import Composition
from wordveil.privacy.relations import Exposure, Relation

CHOICES: dict[str, tuple[str, ...]] = {
    "tokeniser": ("words", "characters", "whitespace"),
    "hyphens": ("split", "inner"),
    "unknown": ("mask", "drop", "keep", "quarantine"),
    "case": ("lower", "exact", "restore"),
    "digits": ("hide", "drop", "keep"),
    "punctuation": ("drop", "keep"),
    "stop_words": ("hide", "drop", "keep"),
    "length": ("as_is", "pad", "sample"),
    "output": ("sequence", "bag"),
    "slots": ("all", "carrier_phrases"),
    "refused": ("quarantine", "empty"),
}
# Version 2: what is copied enters the noise's context. Policies that copy nothing draw as before, and keep their
# fingerprint.
_VERSION, _COPYING_VERSION = 1, 2

SLOT_THRESHOLD, SLOT_START_THRESHOLD = 0.02, 0.002
"""The thresholds of a configuration that says nothing of them; a policy itself names them always."""


@dataclass(frozen=True)
class TextPolicy:
    """All that decides how a text becomes token ids and token ids a text.

    Attributes
    ----------
    tokeniser
        ``words`` | ``characters`` | ``whitespace`` (:mod:`wordveil.text.tokeniser`).
    hyphens
        ``split`` at hyphens, or keep ``inner`` ones.
    unknown
        words outside the vocabulary: ``mask`` (enter as the mechanism's unknown word), ``drop``, ``keep`` (copied
        unchanged: no protection), ``quarantine`` (the record is refused).
    case
        ``lower`` (looked up in lower case), ``exact`` (looked up as written), ``restore`` (looked up in lower case; the
        original's pattern is put on the output word).
    digits
        words with a digit: ``hide`` like any word, ``drop``, ``keep`` (copied).
    punctuation
        everything between words: ``drop`` or ``keep`` (copied).
    stop_words
        the words of ``stop_word_list``: ``hide`` like any word, ``drop``, ``keep`` (copied).
    stop_word_list
        lower case, sorted; only looked at where stop-words are dropped or kept.
    length
        ``as_is``; ``pad`` (cut or filled to ``n_max`` with padding, which is perturbed like words); ``sample``
        (``n_max`` words drawn i.i.d. from the text: Fernandes, Dras, McIver 2018, section 5.2).
    n_max
        the public number of tokens under ``pad`` and ``sample``; None under ``as_is``.
    output
        ``sequence``, or ``bag`` (order destroyed).
    refused
        a record refused because of its text is put in ``quarantine``, or enters as the ``empty`` text.
    slots
        ``all`` words are hidden, but for what the settings above say; or the words of ``carrier_phrases`` are copied,
        and the others are hidden so (:mod:`wordveil.text.slots`: Feyisetan, Diethe, Drake 2019, section VII-D).
    ngrams
        the digest of the n-gram model that tells carrier phrases, None under ``slots: all``; so are the two that
        follow.
    slot_threshold
        the least probability with which a copied word follows those before it; above 0, at most 1.
    slot_start_threshold
        the least share of all words of a copied one that follows none; above 0, at most 1.
    """

    tokeniser: str = "words"
    hyphens: str = "split"
    unknown: str = "mask"
    case: str = "lower"
    digits: str = "hide"
    punctuation: str = "drop"
    stop_words: str = "hide"
    stop_word_list: tuple[str, ...] = ()
    length: str = "as_is"
    n_max: int | None = None
    output: str = "sequence"
    refused: str = "quarantine"
    slots: str = "all"
    ngrams: str | None = None
    slot_threshold: float | None = None
    slot_start_threshold: float | None = None

    def __post_init__(self) -> None:
        faults = policy_faults(self)
        if faults:
            raise ValueError("; ".join(f"{name}: {problem}" for name, problem in faults))

    @property
    def copies(self) -> tuple[Exposure, ...]:
        """What is copied unchanged from the text."""
        copied = {
            Exposure.PUNCTUATION: self.punctuation == "keep",
            Exposure.CASE: self.case == "restore",
            Exposure.DIGITS: self.digits == "keep",
            Exposure.STOP_WORDS: self.stop_words == "keep",
            Exposure.UNKNOWN_WORDS: self.unknown == "keep",
            Exposure.CARRIER_PHRASES: self.slots == "carrier_phrases",
        }
        return tuple(exposure for exposure, is_copied in copied.items() if is_copied)

    @property
    def pads(self) -> bool:
        """Whether texts are padded, so that the mechanism needs a point for padding."""
        return self.length == "pad"

    @property
    def relation(self) -> Relation:
        """The pairs of texts for which the bound holds."""
        if self.copies:
            return Relation.SAME_SKELETON
        return Relation.SAME_LENGTH if self.length == "as_is" else Relation.ANY_TEXT

    @property
    def composition(self) -> Composition:
        """How the tokens' losses add up."""
        if self.length == "sample":
            return Composition.SAMPLED
        return Composition.BAG if self.output == "bag" else Composition.SEQUENCE

    @property
    def exposes(self) -> tuple[str, ...]:
        """What is shown besides the sanitised words, sorted."""
        shown = {str(exposure) for exposure in self.copies}
        if self.length == "as_is":
            shown.add(Exposure.LENGTH)
        if self.refused == "quarantine":
            shown.add(Exposure.PRESENCE)
        return tuple(sorted(shown))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all settings that differ from the defaults, hexadecimal; so a new setting changes no old
        policy.
        """
        plain = {field.name: field.default for field in fields(self)}
        chosen = {name: value for name, value in asdict(self).items() if value != plain[name]}
        version = _COPYING_VERSION if self.copies else _VERSION
        content = json.dumps({"version": version, **chosen}, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(content.encode()).hexdigest()


PROFILES: dict[str, dict[str, object]] = {
    # Covers every string: nothing is copied, unknown words are covered, the length is hidden by n_max (required).
    "strict": {"length": "pad"},
    # Keeps punctuation, case, stop-words and length; the bound holds for texts of the same skeleton only.
    "readable": {"case": "restore", "punctuation": "keep", "stop_words": "keep"},
    # The same, with the phrases that are common in public text in the place of stop-words; an n-gram model is required.
    "carrier_phrases": {"case": "restore", "punctuation": "keep", "slots": "carrier_phrases"},
}
"""The shipped profiles, as settings that differ from the defaults of :class:`TextPolicy`."""


def policy_faults(policy: TextPolicy) -> list[tuple[str, str]]:
    """Settings that contradict each other, as (setting, what is wrong and the mend)."""
    faults = [
        (name, f"{getattr(policy, name)!r} is not one of {', '.join(allowed)}.")
        for name, allowed in CHOICES.items()
        if getattr(policy, name) not in allowed
    ]
    hides_length = policy.length in ("pad", "sample")
    if hides_length and (policy.n_max is None or not 0 < policy.n_max < 2**24):
        faults.append(("n_max", f"length: {policy.length} needs a public number of tokens, 1 to 16777215."))
    if not hides_length and policy.n_max is not None:
        faults.append(("n_max", "has no meaning with length: as_is. Remove it, or set length to pad or sample."))
    copied = ", ".join(policy.copies)
    if copied and hides_length:
        faults.append(
            (
                "length",
                f"{policy.length} hides the length, but the policy copies {copied}, which shows it. Use as_is, or copy nothing.",
            )
        )
    if copied and policy.output == "bag":
        faults.append(
            (
                "output",
                f"bag destroys the order, but the policy copies {copied} in its place. Use sequence, or copy nothing.",
            )
        )
    if policy.refused == "empty" and policy.relation is not Relation.ANY_TEXT:
        faults.append(
            (
                "refused",
                "empty lets a refused record enter as the empty text, which only a hidden length covers. Use quarantine, or set length to pad or sample.",
            )
        )
    if policy.stop_words != "hide" and not policy.stop_word_list:
        faults.append(("stop_word_list", f"stop_words: {policy.stop_words} needs a list."))
    return [*faults, *_slot_faults(policy)]


def _slot_faults(policy: TextPolicy) -> Iterator[tuple[str, str]]:
    """Settings of slot selection that are missing, or there without it."""
    selects = policy.slots == "carrier_phrases"
    if selects and policy.stop_words != "hide":
        yield (
            "stop_words",
            f"{policy.stop_words} has no place with slots: carrier_phrases: the n-gram model decides about stop-words too. Remove it.",
        )
    if selects and policy.ngrams is None:
        yield "ngrams", "slots: carrier_phrases needs an n-gram model of public text. `wordveil ngrams` builds one."
    if not selects and policy.ngrams is not None:
        yield "ngrams", "has no meaning with slots: all. Remove it, or set slots: carrier_phrases."
    for name in ("slot_threshold", "slot_start_threshold"):
        value = getattr(policy, name)
        if not selects and value is not None:
            yield name, "has no meaning with slots: all. Remove it, or set slots: carrier_phrases."
        if selects and (value is None or not 0 < value <= 1):
            yield name, "slots: carrier_phrases needs a probability, above 0 and at most 1."


def with_profile(profile: str, **settings: object) -> TextPolicy:
    """The policy of a shipped profile with some settings replaced. Raises KeyError or ValueError."""
    return TextPolicy(**{**PROFILES[profile], **settings})  # type: ignore[arg-type]


def faults_of(settings: Mapping[str, object]) -> list[tuple[str, str]]:
    """What :func:`policy_faults` says of a policy with ``settings``, without making one."""
    draft = object.__new__(TextPolicy)
    for field in fields(TextPolicy):
        object.__setattr__(draft, field.name, settings.get(field.name, field.default))
    return policy_faults(draft)
