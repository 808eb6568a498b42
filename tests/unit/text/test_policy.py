"""What a text policy shows and what its bound covers; contradictions; fingerprints that never move."""

from __future__ import annotations

import pytest

from wordveil.text.choices import Profile
from wordveil.text.policy import CHOICES, PROFILES, DraftPolicy, TextPolicy, find_faults, with_profile
from wordveil.text.types.classes import masked_actions

STOPS = {"stop_word_list": ("of", "the")}
PAD = {"length": "pad", "n_max": 8}
SLOTS = {"slots": "carrier_phrases", "ngrams": "0" * 64, "slot_threshold": 0.02, "slot_start_threshold": 0.002}
SAMPLE = {"length": "sample", "n_max": 8}

SKELETON = {**STOPS, "stop_words": "keep"}
SAME = {"repeat": "same"}
# The settings by what follows from them (relation, composition, exposes), by hand: what is copied leaves texts of the
# same skeleton; what is dropped or quarantined leaves the count, as_is shows it; only a hidden length covers any text;
# a refusal shows presence.
TABLE = {
    "same_length sequence length presence": [
        {}, {"tokeniser": "characters"}, {"tokeniser": "whitespace"}, {"tokeniser": "chinese", "language": "zh"},
        {"tokeniser": "japanese", "language": "ja"}, {"hyphens": "inner"}, {"unknown": "drop"},
        {"unknown": "quarantine"}, {"case": "exact"}, {"digits": "drop"}, {"controls": "drop"},
        {"controls": "quarantine"}, {**STOPS, "stop_words": "drop"}, {"other_language": "quarantine"},
        {"other_language": "mask"}, {**STOPS, "stop_words": "drop", "other_language": "mask"},
        {"types": {"number": "mask"}}, {"max_unknown_share": 0.5},
    ],
    "same_skeleton sequence length presence unknown_words": [{"unknown": "keep"}],
    "same_skeleton sequence case length presence": [{"case": "restore"}],
    "same_skeleton sequence digits length presence": [{"digits": "keep"}],
    "same_skeleton sequence length presence punctuation": [{"punctuation": "keep"}],
    "same_skeleton sequence digits length presence punctuation": [{"punctuation": "keep", "digits": "keep"}],
    "same_skeleton sequence length presence stop_words": [
        SKELETON, {**SKELETON, "stop_word_capitals": "replace"}, {**SKELETON, "articles": "agree"},
    ],
    "same_skeleton sequence language length presence stop_words": [{**SKELETON, "other_language": "mask"}],
    "same_skeleton sequence carrier_phrases length presence": [SLOTS],
    "same_skeleton sequence carrier_phrases language length presence": [{**SLOTS, "other_language": "mask"}],
    "same_skeleton sequence length presence types": [
        {"names": "gazetteer"}, {"types": {"email": "tag"}}, {"types": {"number": "resample"}},
    ],
    "same_skeleton sequence language length presence types": [{"other_language": "mask", "types": {"url": "tag"}}],
    "same_length bag length presence": [{"output": "bag"}],
    "any_text sequence presence": [
        PAD, {**PAD, "tokeniser": "characters"}, {**PAD, "tokeniser": "whitespace"}, {**PAD, "hyphens": "inner"},
        {**PAD, "case": "exact"}, {**PAD, "unknown": "drop"}, {**PAD, "unknown": "quarantine"},
        {**PAD, "digits": "drop"}, {**PAD, **STOPS, "stop_words": "drop"}, {**PAD, "types": {"number": "mask"}},
        {**PAD, "names": "gazetteer"}, {**PAD, "other_language": "quarantine"}, {**PAD, "unit": "text"},
        {**PAD, "unit": "sentence"},
    ],
    "any_text bag presence": [{**PAD, "output": "bag"}],
    "any_text sampled presence": [SAMPLE, {**SAMPLE, "output": "bag"}],
    "any_text sequence": [
        {**PAD, "refused": "empty"}, {**PAD, "refused": "empty", "other_language": "mask"},
        {**PAD, "refused": "empty", "max_unknown_share": 0.5},
    ],
    "any_text bag": [{**PAD, "refused": "empty", "output": "bag"}],
    "any_text sampled": [{**SAMPLE, "refused": "empty"}],
    "same_skeleton distinct length presence repetition": [SAME, {**SAME, "output": "bag"}],
    "same_skeleton distinct presence repetition": [{**PAD, **SAME}, {**PAD, **SAME, "output": "bag"}],
    "same_skeleton distinct case length presence repetition": [{**SAME, "case": "restore"}],
    "same_skeleton distinct carrier_phrases length presence repetition": [{**SLOTS, **SAME}],
}  # fmt: skip
SETTINGS = [settings for group in TABLE.values() for settings in group]

# The same for the profiles.
WORDS = {"types": {}, "names": "words"}
"""No token is told apart from words."""
PROFILE_TABLE = [
    ("strict", {"n_max": 8}, "any_text sequence presence"),
    ("strict", {"n_max": 8, "output": "bag", "length": "sample"}, "any_text sampled presence"),
    ("strict", {"length": "as_is"}, "same_length sequence length presence"),
    ("readable", STOPS, "same_skeleton sequence case length presence punctuation stop_words types"),
    ("readable", {**STOPS, **WORDS}, "same_skeleton sequence case length presence punctuation stop_words"),
    ("passages", {}, "any_text sequence presence"),
    ("carrier_phrases", SLOTS, "same_skeleton sequence carrier_phrases case length presence punctuation types"),
]


def facts_of(policy):
    return " ".join([policy.relation, policy.composition, *policy.exposes])


def test_what_follows_from_each_setting():
    for facts, group in TABLE.items():
        found = {str(settings): facts_of(TextPolicy(**settings)) for settings in group}
        assert found == dict.fromkeys(found, facts)


def test_what_follows_from_each_profile():
    found = [facts_of(with_profile(profile, **settings)) for profile, settings, _ in PROFILE_TABLE]
    assert found == [facts for _, _, facts in PROFILE_TABLE]


def test_the_table_covers_every_choice_of_every_setting():
    seen = {(name, getattr(TextPolicy(**settings), name)) for settings in SETTINGS for name in CHOICES}
    assert seen == {(name, choice) for name, choices in CHOICES.items() for choice in choices}


def test_four_profiles_ship_and_ask_for_what_they_need():
    assert list(PROFILES) == list(Profile) == ["strict", "passages", "readable", "carrier_phrases"]
    for name, where in (("strict", "n_max"), ("readable", "stop_word_list"), ("carrier_phrases", "ngrams")):
        with pytest.raises(ValueError, match=f"{where}: .* needs a"):
            with_profile(name)
    controls = {name: settings.get("controls", "keep") for name, settings in PROFILES.items()}
    assert controls == {"strict": "keep", "passages": "keep", "readable": "drop", "carrier_phrases": "drop"}, (
        "as punctuation"
    )


def test_unknown_choice_is_refused_with_the_known_ones():
    for name, choices in CHOICES.items():
        with pytest.raises(ValueError, match=f"{name}: 'nonsense' is not one of {next(iter(choices))}, "):
            TextPolicy(**{name: "nonsense"})


NAN = float("nan")
CONTRADICTIONS = {
    "n_max": [
        {"length": "pad"}, {"length": "sample"}, {"length": "pad", "n_max": 0}, {"length": "pad", "n_max": -1},
        {"length": "pad", "n_max": 2**24}, {"n_max": 8},
    ],
    "length": [
        {**PAD, "punctuation": "keep"}, {**PAD, "case": "restore"}, {**PAD, "digits": "keep"},
        {**PAD, "unknown": "keep"}, {**SAMPLE, **SKELETON}, {**PAD, **SLOTS}, {**SAMPLE, **SLOTS},
        {**PAD, "types": {"email": "tag"}},
    ],
    "output": [
        {"output": "bag", "punctuation": "keep"}, {"output": "bag", "unknown": "keep"}, {**SLOTS, "output": "bag"},
        {"output": "bag", "types": {"email": "tag"}},
    ],
    "refused": [
        {"refused": "empty"}, {"refused": "empty", "punctuation": "keep"}, {**PAD, **SAME, "refused": "empty"},
        {**SLOTS, "refused": "empty"},
    ],
    "repeat": [{**SAMPLE, **SAME}, {"repeat": "nonsense"}],
    "stop_word_list": [{"stop_words": "drop"}, {"stop_words": "keep"}],
    "stop_word_capitals": [{"stop_word_capitals": "replace"}],
    "stop_words": [{**SLOTS, **SKELETON}, {**SLOTS, **STOPS, "stop_words": "drop"}],
    "articles": [
        {"articles": "agree"}, {**SKELETON, "articles": "agree", "case": "exact"},
        {**SKELETON, "articles": "agree", "language": "de"},
    ],
    "ngrams slot_threshold slot_start_threshold": [{**SLOTS, "slots": "all"}, {"slots": "carrier_phrases"}],
    "slot_threshold slot_start_threshold": [{**SLOTS, "slot_threshold": 0.0, "slot_start_threshold": NAN}],
    "types.e-mail": [{"types": {"e-mail": "mask"}}],
    "types.email": [{"types": {"email": "resample"}}],
    "types.place": [{"types": {"place": "tag"}}],
    "digits": [{"digits": "keep", "types": {"number": "mask"}}],
    "language": [{"language": "german"}, {"language": "xx"}, {"language": "ab", "other_language": "mask"}],
    "tokeniser": [{"tokeniser": "chinese"}, {"tokeniser": "japanese", "language": "zh"}],
    "other_language": [
        {"other_language": "mask", "unknown": "keep"}, {"other_language": "mask", "unknown": "drop"},
        {"other_language": "mask", "unknown": "quarantine"}, {"other_language": "drop"},
    ],
    "max_unknown_share": [
        {"max_unknown_share": 1.0}, {"max_unknown_share": -0.1}, {"max_unknown_share": NAN},
        {"max_unknown_share": 0.5, "unknown": "quarantine"},
    ],
    "language tokeniser max_unknown_share": [{"language": "xx", "tokeniser": "chinese", "max_unknown_share": 2.0}],
    "case digits n_max stop_word_list": [
        {"case": "nonsense", "digits": "nonsense", "n_max": 8, "stop_words": "drop"},
    ],
    "n_max length output refused": [{"length": "pad", "output": "bag", "case": "restore", "refused": "empty"}],
    "": [
        {"language": "ab"}, {"language": "de", "other_language": "mask"}, {"max_unknown_share": 0.0},
        {"other_language": "quarantine", "unknown": "keep"}, {"length": "pad", "n_max": 1},
        {"length": "pad", "n_max": 2**24 - 1},
    ],
}  # fmt: skip


@pytest.mark.parametrize("names", CONTRADICTIONS)
def test_contradictions_are_reported_all_at_once(names):
    for settings in CONTRADICTIONS[names]:
        faults = find_faults(DraftPolicy(**settings))
        assert " ".join(name for name, _ in faults) == names
        if not faults:
            TextPolicy(**settings)
            continue
        with pytest.raises(ValueError, match=names.split()[0]) as caught:
            TextPolicy(**settings)
        assert all(f"{name}: {problem}" in str(caught.value) for name, problem in faults)


def test_fingerprint_tells_all_settings_apart():
    policies = [TextPolicy(**settings) for settings in SETTINGS]
    changed = ({"ngrams": "1" * 64}, {"slot_threshold": 0.5}, {"slot_start_threshold": 0.2})
    policies += [TextPolicy(**{**SLOTS, **change}) for change in changed]
    policies += [TextPolicy(**{**PAD, "n_max": 9}), TextPolicy(stop_words="drop", stop_word_list=("of",))]
    assert len({policy.fingerprint for policy in policies}) == len(policies)


def test_fingerprint_of_equal_settings_is_equal():
    strict = with_profile("strict", n_max=8)
    assert strict.fingerprint == TextPolicy(n_max=8, length="pad", types=masked_actions()).fingerprint
    assert with_profile("strict", n_max=8, types={}).fingerprint == TextPolicy(n_max=8, length="pad").fingerprint


def test_fingerprint_of_known_policies_never_moves():
    """What the profiles were before they dropped controls and told tokens apart can still be had."""
    known = {
        "readable": (STOPS, "1c6d718fef16e24ffd413199a0cbb3f5efe01ecb6a031941a2070588e53798fe"),
        "carrier_phrases": (SLOTS, "a06e664617886dd5d9159bfcecf76f79215596c834c718c9cbe8615de5b969ef"),
        "strict": ({"n_max": 512}, "a054c6d1122cb9ba14deabd9d977422304cf4e535dbd356cebd509aec35603e7"),
    }
    for name, (settings, fingerprint) in known.items():
        assert with_profile(name, **settings, **WORDS, controls="keep").fingerprint == fingerprint


# Of a policy with one choice and what it needs; the first choice of each setting is the default.
DEFAULT = "c3aa9744214caf6eb993d6f88f3f1dda3e4e60d59f712b6463c4ce2c4b00dfa1"
FINGERPRINTS = {
    ("tokeniser", "characters"): "63b1ffcd0af62c0c8d510570c4788f45bc44c6023fa2cab78b32dd4789947a72",
    ("tokeniser", "whitespace"): "384982903b7dd199da8c587c4a0c625f006f8227f550ad6ddcb996ecfc8bf824",
    ("hyphens", "inner"): "2d2ed4808b78c99ebe51b8983e23092b46e4f62b8a105f0f228b9b2144164b52",
    ("unknown", "drop"): "7af4af26d05b0f9afed9e0c7aa0329568041c7797de251b16a4d68f54d615e73",
    ("unknown", "keep"): "e1f22dec50f6eeb18c2b873804a0c9fecaf1a09c6e332f9d7383d93d9f59b72a",
    ("unknown", "quarantine"): "82b98e8301aedbb717a5b280c6b514a37f4758d9ac52685f0dbf0c065105f7b1",
    ("case", "exact"): "23cbdd0e087675214d80d3a0cc4dd8236d4e491f5e3afd6f0eae01d4971a0051",
    ("case", "restore"): "b22bd84b3249a0525fa5136efa11d2cb455c534f3c5750a307f965aeefb9305e",
    ("digits", "drop"): "8ad2fd12495223b784983c820e82aa0c9063a10be2b225ed51c93cd3f03a5529",
    ("digits", "keep"): "62295022dfd2857d4d3493ebd18ae9fd155b097a92bb2c45e1af697d8a6f7cc6",
    ("punctuation", "keep"): "dfc0fb5d7cb86abd6ea64f52383c60ee0ff0f1ff5c46fc7a68a52b4d00ab73ec",
    ("controls", "drop"): "22b026d2742842cd932999e3ee69853fdecc4b3e24d17587324ee69dab140017",
    ("controls", "quarantine"): "cdaba4727087dc12dd6ace2ca4c585a2600d40d8c0649a29933c6a04f2a864ef",
    ("stop_words", "drop"): "ff83882aebf1496bc88bd821e664367013be3b77f0a96452d6d701b40f30caad",
    ("stop_words", "keep"): "0df917a9848e79753197ba60f363f70cf1ab993c064bd052b0627b142f58eb63",
    ("stop_word_capitals", "replace"): "9e2acfdb3dbad5cb7c442d9ad99501c2575a160461770cad8df1c34c88305cd4",
    ("articles", "agree"): "d5f820044ae4ccfddac7197da0625494734cb3af08c650cc50a19f59ad8dddab",
    ("length", "pad"): "5114c949123dbbc2a2bc60738bc44ebd8f522f0e03a443b1ce4136e64e589fcf",
    ("length", "sample"): "1f13739584baafb1333b28bf909c6deb51fcbcc1cd669166992294504f76ddfe",
    ("output", "bag"): "1c5ae8a262e1deddbdc203a1961cea7ff59f951c620eb6b2ff3d2b7191135851",
    ("slots", "carrier_phrases"): "63ab5950c37e9dc88e4fa27822b0a9f87d0247b76bb2b15bcd4ac2bd0e295495",
    ("unit", "text"): "e600acf983f46a109ac9e54aa46419bd47969c278512c81d7961d79d382251f2",
    ("unit", "sentence"): "8d97e02f050ebf1bbf3e2216ffc806c1cee73ef148904e0f862a80089729a983",
    ("refused", "empty"): "c4b4bc7d28a99ce96c86fb1793e49b8de90c4e68ac8592dedc7b6254ce9d41d9",
    ("repeat", "same"): "36a3b3b27918bb6bcebc5ffb9f55d05b5c32b03491baf9074b4be8ddd31ab2f0",
    ("tokeniser", "chinese"): "455046d1d08f40bf73728d92ffb3be53fe5ba2df5967c971f0e22aec523c6353",
    ("tokeniser", "japanese"): "1a57ab852780156b2eb9f1d91556c19732a78029cb4dd7445bb747d696d5a5a9",
    ("other_language", "mask"): "b61be69804fd65f887a146ccb03fe831338f5044b677cd409b8f084ec1ba1251",
    ("names", "gazetteer"): "620898ac61cfba4e46c5d39ba798f179e4ec16d1d74af8e36f162916c47a51a8",
    ("other_language", "quarantine"): "1fa303015f06f7ec35c479fc0e66104d0fa1a18007c2f2c5a02ef1f4268a495b",
}
LISTED = {"stop_words": "keep", "stop_word_list": ("of",)}
NEEDED = {
    ("unit", "text"): PAD,
    ("unit", "sentence"): PAD,
    ("length", "pad"): {"n_max": 8},
    ("length", "sample"): {"n_max": 8},
    ("refused", "empty"): PAD,
    ("stop_words", "drop"): {"stop_word_list": ("of",)},
    **dict.fromkeys((("stop_words", "keep"), ("stop_word_capitals", "replace"), ("articles", "agree")), LISTED),
    ("slots", "carrier_phrases"): {**SLOTS, "ngrams": "ab" * 32},
    ("tokeniser", "chinese"): {"language": "zh", "packages": "rjieba 0.2.2"},
    ("tokeniser", "japanese"): {"language": "ja", "packages": "SudachiPy 0.7.0, SudachiDict-small 20261015"},
    ("other_language", "mask"): {"packages": "py3langid 0.4.0"},
    ("other_language", "quarantine"): {"packages": "py3langid 0.4.0"},
}


@pytest.mark.parametrize("form", [lambda choice: choice, str], ids=["value", "name"])
def test_fingerprint_of_each_choice_never_moves(form):
    expected = FINGERPRINTS | {(name, next(iter(kind))): DEFAULT for name, kind in CHOICES.items()}
    for name, kind in CHOICES.items():
        for choice in kind:
            policy = TextPolicy(**{**NEEDED.get((name, choice), {}), name: form(choice)})
            assert policy.fingerprint == expected.pop((name, choice))
            assert type(getattr(policy, name)) is kind
    assert expected == {}


# (settings, setting at fault, each change that its message offers)
MENDS = [
    ({"n_max": 8}, "n_max", [{"n_max": None}, {"length": "pad"}, {"length": "sample"}]),
    ({"n_max": 8, "repeat": "same"}, "n_max", [{"n_max": None}, {"length": "pad"}]),
    ({"n_max": 8, "punctuation": "keep"}, "n_max", [{"n_max": None}]),
    ({**PAD, "punctuation": "keep"}, "length", [{"length": "as_is", "n_max": None}, {"punctuation": "drop"}]),
    ({"articles": "agree", **STOPS}, "articles", [{"articles": "copy"}, {"stop_words": "keep"}]),
    ({**PAD, "articles": "agree", **STOPS}, "articles", [{"articles": "copy"}]),
    ({"stop_word_capitals": "replace", **STOPS}, "stop_word_capitals", [{"stop_words": "keep"}]),
    ({"output": "bag", "stop_word_capitals": "replace"}, "stop_word_capitals", [{"stop_word_capitals": "match"}]),
    ({"refused": "empty"}, "refused", [{"refused": "quarantine"}, PAD, SAMPLE]),
    ({"refused": "empty", "punctuation": "keep"}, "refused", [{"refused": "quarantine"}]),
    ({**PAD, **SAME, "refused": "empty"}, "refused", [{"refused": "quarantine"}]),
    ({**SAMPLE, "repeat": "same"}, "repeat", [{"length": "pad"}, {"repeat": "each"}]),
]


@pytest.mark.parametrize(("settings", "name", "mends"), MENDS, ids=str)
def test_contradiction_offers_only_mends_that_work(settings, name, mends):
    (message,) = [problem for where, problem in find_faults(DraftPolicy(**settings)) if where == name]
    for mend in mends:
        assert find_faults(DraftPolicy(**{**settings, **mend})) == [], mend
    for length in ("pad", "sample"):  # a message offers a length only where it works
        works = not find_faults(DraftPolicy(**{**settings, "length": length, "n_max": 8}))
        assert works or f"length to {length}" not in message
        assert works or f" or {length}." not in message
    works = not find_faults(DraftPolicy(**{**settings, "stop_words": "keep"}))
    assert works or "set stop_words: keep" not in message
