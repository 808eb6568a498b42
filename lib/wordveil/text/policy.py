"""Text policies: the hidden, dropped or copied parts of a text, and their consequences for the guarantee.

No text is read here; the relation and the exposures of a policy follow from its settings alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from wordveil.text.choices import Case, Controls, Length, Names, Profile, Punctuation, Refused, Slots, StopWords
from wordveil.text.contradictions import find_faults
from wordveil.text.draft import CHOICES, DraftPolicy
from wordveil.text.language import find_packages
from wordveil.text.types.classes import MASKED, READABLE_ACTIONS

# Of policies that copy: since version 2 what is copied enters the noise's context, and version 3 copies less and takes
# more tokens for names. Version 2 of those where a refused record counts as the empty text, and nothing may show that:
# one that is refused no more must not be drawn anew. Others draw as before, and keep their fingerprint.
_VERSION, _EMPTY_VERSION, _COPYING_VERSION = 1, 2, 3

SLOT_THRESHOLD, SLOT_START_THRESHOLD = 0.02, 0.002
"""Thresholds of a configuration that does not set them. A policy itself always names them."""


@dataclass(frozen=True)
class TextPolicy(DraftPolicy):
    """Policy of converting a text to token ids and back.

    Choices may be given by their values: ``TextPolicy(length="pad", n_max=8)``.

    Raises
    ------
    ValueError
        if settings contradict each other. It names each of them.
    """

    def __post_init__(self) -> None:
        if faults := find_faults(self):
            raise ValueError("; ".join(f"{name}: {problem}" for name, problem in faults))
        for name, choice in CHOICES.items():
            object.__setattr__(self, name, choice(getattr(self, name)))
        object.__setattr__(self, "types", self.stated_types)
        if self.packages is None:
            object.__setattr__(self, "packages", find_packages(self))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all settings that differ from the defaults, hexadecimal. So a new setting changes no old
        policy.
        """
        plain = {field.name: field.default for field in fields(self)}
        chosen = {name: value for name, value in asdict(self).items() if value != plain[name]}
        version = _COPYING_VERSION if self.copies else _EMPTY_VERSION if self.refused == Refused.EMPTY else _VERSION
        content = json.dumps({"version": version, **chosen}, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(content.encode()).hexdigest()


PROFILES: Mapping[str, Mapping[str, object]] = {
    # Covers every string: nothing is copied, unknown words are covered, the length is hidden by n_max (required).
    Profile.STRICT: {"length": Length.PAD, "types": MASKED},
    # Keeps punctuation, case, stop-words and length, but no character that cannot be seen. The bound holds for texts of
    # the same skeleton only.
    Profile.READABLE: {
        "case": Case.RESTORE,
        "punctuation": Punctuation.KEEP,
        "controls": Controls.DROP,
        "stop_words": StopWords.KEEP,
        "types": READABLE_ACTIONS,
        "names": Names.GAZETTEER,
    },
    # The same, with the phrases that are common in public text instead of stop-words. An n-gram model is required.
    Profile.CARRIER_PHRASES: {
        "case": Case.RESTORE,
        "punctuation": Punctuation.KEEP,
        "controls": Controls.DROP,
        "slots": Slots.CARRIER_PHRASES,
        "types": READABLE_ACTIONS,
        "names": Names.GAZETTEER,
    },
}
"""Shipped profiles, as settings that differ from the defaults of :class:`TextPolicy`."""


def with_profile(profile: str, **settings: object) -> TextPolicy:
    """Make the policy of a shipped profile, with some settings replaced.

    Raises
    ------
    KeyError
        if there is no such profile.
    ValueError
        if settings contradict each other.
    """
    return TextPolicy(**{**PROFILES[profile], **settings})  # type: ignore[arg-type]
