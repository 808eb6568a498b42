"""The page of an evaluation: one file that loads nothing, says all that it should, and escapes whatever it is given."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from support.evaluations import make_attack, make_evaluation, make_score
from support.pages import ESCAPED, EVIL, Elements, check_alone, read_text
from wordveil.cli.evaluate import print_scores
from wordveil.report.compare import compare_evaluations, render_comparison
from wordveil.report.page import describe_evaluation, draw_heatmap, draw_scores, render_evaluation, write_headline
from wordveil.report.values import show_number
from wordveil.scores.evaluation import Confusion, Evaluation, TextExample
from wordveil.scores.score import Group, Score

MANY = tuple(
    score
    for number in range(12)
    for score in (make_attack(f"way {number}", 0.1 + number / 20), make_score(f"way {number}", 0.5 + number / 30))
)
PAGES = {
    "release": make_evaluation,
    "many subjects": lambda: Evaluation("Field", {}, MANY, is_private=False),
    "nothing": lambda: Evaluation("Empty", {}, ()),
}


def read(evaluation: Evaluation) -> str:
    return read_text(render_evaluation(evaluation))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "0.500"), (2.34e-4, "0.00023"), (1e-5, "0.00001"), (-1e-5, "-0.00001"), (1e-6, "0.000001"), (1e-7, "1e-07")],
)
def test_show_number_writes_decimals_down_to_a_millionth(value, text):
    assert show_number(value) == text


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_and_loads_nothing(name):
    elements = check_alone(render_evaluation(PAGES[name]()))
    values = [value for _, attributes in elements.tags for value in attributes.values()]
    assert not [value for value in values if value and "nan" in value]


@pytest.mark.parametrize("name", ["release", "many subjects"])
def test_figures_on_narrow_screens_have_labels(name):
    tags = Elements(render_evaluation(PAGES[name]())).tags
    cells = [attributes.get("data-label") for tag, attributes in tags if tag == "td"]
    assert len(cells) > 10 and all(cells)


def spoil(evaluation: Evaluation) -> Evaluation:
    """Every text of an evaluation becomes a script."""
    scores = tuple(
        replace(one, subject=EVIL + one.subject, task=EVIL, method=EVIL, variant=EVIL, definition=EVIL, note=EVIL)
        for one in evaluation.scores
    )
    return Evaluation(
        EVIL,
        {EVIL: EVIL},
        scores,
        (Confusion(EVIL, EVIL, EVIL, (EVIL, "b"), ((1, 2, 1), (3, 4, 0))),),
        (TextExample(EVIL, EVIL, EVIL),),
        (EVIL,),
    )


def test_every_name_is_escaped():
    spoilt = spoil(make_evaluation())
    pages = [
        render_evaluation(spoilt),
        render_evaluation(spoil(PAGES["many subjects"]())),
        render_comparison(compare_evaluations(spoilt, make_evaluation(), (EVIL, "b"))),
    ]
    for page in pages:
        assert page.count(ESCAPED) > 5
        check_alone(page)


def test_a_release_is_judged_in_sentences_first():
    said = read(make_evaluation())
    found = "the strongest adaptive attack (svm-characters) still finds authors: accuracy 0.400 (0.380 to 0.420)"
    assert f"release: {found}; chance is 0.100; on the original it is 0.750 (svm-characters)." in said
    assert "release: topic by fasttext has accuracy 0.700 (0.680 to 0.720); chance is 0.100" in said
    weak = read(replace(make_evaluation(0.11), confusions=()))
    assert "(svm-characters) is not clearly better than chance on authors: accuracy 0.110 (0.090 to 0.130)" in weak


def test_page_figures_have_interval_chance_count_and_definition():
    evaluation = make_evaluation()
    page = render_evaluation(evaluation)
    said, elements = read_text(page), Elements(page)
    titles = ("Privacy", "Attacks", "Utility", "Examples", "What it was made from")
    figures = ("0.400", "0.380 to 0.420", "0.100", "infinite", "Unknown words are copied.", "100")
    for shown in (*titles, *figures, *(score.definition for score in evaluation.scores)):
        assert shown in said
    assert "Cost" not in said  # no figure is of this group
    # 0.75 of the original, 0.2 and 0.4 of the release; koppel's 0.11 is not surely above 0.1.
    assert elements.count("span", "above") == 3


def test_examples_and_notes_are_shown_and_can_be_absent():
    said = read(make_evaluation())
    assert "Internal." in said
    assert "Internal." not in read(make_evaluation(is_private=False))
    assert "The train leaves." in said and "The ferry goes." in said
    assert "Only adaptive attackers bound anything." in said
    bare = read(make_evaluation(examples=(), notes=(), confusions=(), facts={}))
    assert "Examples" not in bare and "Who was taken for whom" not in bare


def make_confusion(*rows: tuple[int, ...]) -> Confusion:
    return Confusion("release", "svm-characters", "adaptive", tuple("abcdefgh"[: len(rows)]), rows)


def test_bars_of_attacks_and_uses_have_chance_and_original():
    scores = (make_attack("original", 0.75), make_attack("release", 0.4), make_score("original", 0.9))
    evaluation = Evaluation("Support", {}, (*scores, make_score("release", 0.7)))
    marks = [attributes for tag, attributes in Elements(render_evaluation(evaluation)).tags if tag == "line"]
    for name, places in (("chance", ["10.0%", "10.0%"]), ("original", ["75.0%", "90.0%"])):
        assert [mark["x1"] for mark in marks if mark["class"] == name] == places
    intervals = [(mark["x1"], mark["x2"]) for mark in marks if mark["class"] == "interval"]
    assert intervals == [("38.0%", "42.0%"), ("68.0%", "72.0%")]
    (bar,) = draw_scores([make_score("release", 0.7, chance=None)], [])["rows"]
    assert (bar["chance"], bar["original"]) == (None, None)


def test_tables_of_many_subjects_alone_are_open():
    """Those of attacks are under the strongest ones. With many subjects the tables are all that names each."""
    page = render_evaluation(make_evaluation())
    bars, attacks, uses = (
        page.index(words) for words in ("What attackers find", "<summary>Attacks", "What stays useful")
    )
    assert bars < attacks < page.index("<table") < uses < page.index("<summary>Utility") < page.index("<summary>Who")
    assert "<summary>Examples" in page and "<details open><summary>Attacks" not in page
    many = render_evaluation(PAGES["many subjects"]())
    assert "What attackers find" not in many
    assert "<details open><summary>Attacks" in many and "<details open><summary>Utility" in many


def test_a_map_has_only_labels_of_ten_texts():
    found = draw_heatmap(make_confusion((10, 1, 0, 0, 0), (0, 0, 9, 0, 0), (3, 2, 4, 1, 0), (0, 0, 9, 0, 0)))
    assert found is not None
    assert (found["rows"], found["columns"], found["left_out"]) == (["1 a", "2 c"], ["1", "2", "all others"], 2)
    assert found["hit_rate"] == 14 / 39
    assert found["pairs"] == (
        "c taken for a: 3 of 10",
        "c taken for b: 2 of 10",
        "a taken for b: 1 of 11",
        "c taken for d: 1 of 10",
    ), "9 of b were taken for c, of too few"
    few = make_confusion((10, 0, 0), (9, 0, 0))
    assert draw_heatmap(few) is None
    said = read(make_evaluation(confusions=(few,)))
    assert "There is no map of who was taken for whom: fewer than two authors have 10 measured texts." in said


def write_sentences(*scores: Score) -> list[str]:
    """What a page says of the release alone."""
    return [line for line in write_headline(Evaluation("Support", {}, scores)) if line.startswith("release:")]


def test_the_worst_attack_is_said_first():
    """Whatever it is: links of records here, authors where they are found more surely."""
    linked = make_attack("release", 0.9, "", task="linkage", method="bayes", figure="linked", chance=0.01)
    words = make_attack("release", 0.3, "", task="words", method="viterbi", figure="recovered", chance=0.1)
    scores = [make_attack("release", 0.4), words, linked, make_score("release", 0.99)]
    first, *others = write_sentences(*scores)
    assert first.startswith("release: anyone with the candidate originals links this share")
    assert "0.9" in first
    assert [sentence.split(" ")[0] for sentence in others] == ["release:"] * 3
    assert "strongest adaptive attack" in write_sentences(*scores, make_attack("release", 0.95))[0]
    page = render_evaluation(Evaluation("Support", {}, tuple(scores)))
    assert page.index("What attackers find") < page.index("linkage: bayes, linked") < page.index("words: viterbi")


HEADLINES = {
    "authors": make_attack("release", 0.4),
    "links": make_attack("release", 0.4, "", task="linkage", method="bayes", figure="linked"),
    "words in context": make_attack("release", 0.4, "", task="words", method="viterbi", figure="recovered"),
    "single words": make_attack("release", 0.4, "draws-1", group=Group.PRIVACY, task="words", figure="recovered"),
    "a task": make_score("release", 0.4),
}
VALUES = [
    (0.227, None, 0.083, True),
    (0.227, 0.19, 0.083, True),
    (0.227, 0.083, 0.083, False),
    (1.0, 1.0, 1.0, False),
    (1 / 300 + 1e-17, None, 1 / 300, False),
    (0.00267, None, 0.0025, True),
]


@pytest.mark.parametrize("name", HEADLINES)
@pytest.mark.parametrize(("value", "low", "chance", "is_above"), VALUES)
def test_a_headline_says_above_chance_as_the_figures_do(name, value, low, chance, is_above, capsys):
    """On the page, in the terminal and in JSON: if and only if the whole interval is above chance."""
    score = replace(HEADLINES[name], value=value, low=low, high=None if low is None else 1.0, chance=chance)
    (sentence,) = write_sentences(score)
    is_denied = bool(re.search("not clearly (more|better)", sentence))
    assert is_denied is not is_above
    evaluation = Evaluation("Support", {}, (score,))
    page = render_evaluation(evaluation)
    assert sentence in read_text(page)
    print_scores(evaluation)
    shown = " ".join("".join(capsys.readouterr()).split())
    assert bool(re.search("not clearly (more|better)", shown)) is not is_above
    described = describe_evaluation(evaluation)
    assert described["headline"] == [sentence]
    assert described["scores"][0]["above_chance"] is is_above
    # Only what an attacker finds is marked.
    assert bool(Elements(page).count("span", "above")) is (is_above and score.group != Group.UTILITY)


@pytest.mark.parametrize("name", HEADLINES)
@pytest.mark.parametrize(
    ("value", "low", "chance", "detectable", "words"),
    [
        (0.50348, 0.500376, 0.5, 0.50311, ("0.5035 (0.5004 to 1)", "chance is 0.5")),
        (0.0040, 0.0010909, 0.001, 0.004, ("0.004 (0.001091 to 1)", "chance is 0.001")),
        (0.6, 0.5, 0.5, 0.61, ("0.600 (0.500 to 1.000)", "chance is 0.500")),
    ],
)
def test_rounding_does_not_contradict_a_verdict(name, value, low, chance, detectable, words):
    """Neither what is above chance nor what would have been seen is written like what is not."""
    score = replace(HEADLINES[name], value=value, low=low, high=1.0, chance=chance, detectable=detectable)
    (sentence,) = write_sentences(score)
    assert all(word in sentence for word in words)


def test_a_static_attack_leads_only_where_it_alone_finds():
    hidden = make_attack("release", 0.11, "adaptive")
    static = make_attack("release", 0.115, "static")
    assert "adaptive attack (svm-characters) is not clearly" in write_sentences(hidden, static)[0]
    found = make_attack("release", 0.3, "static", method="koppel")
    assert "static attack (koppel) still finds" in write_sentences(hidden, found)[0]
    assert "adaptive attack" in write_sentences(make_attack("release", 0.25), found)[0]


def test_a_headline_says_which_attack_it_would_have_seen():
    seen, unseen = "; 100 texts show one above it from 0.071 on", "so few texts (100) could have shown none"
    for detectable, words in ((0.071, seen), (float("inf"), unseen)):
        for score in (make_attack("release", 0.1), make_attack("release", 0.1, figure="linked", task="linkage")):
            assert words in write_sentences(replace(score, detectable=detectable))[0]
    sure = replace(HEADLINES["authors"], value=1.0, low=0.99, high=1.0, chance=1.0, detectable=float("inf"))
    (sentence,) = write_sentences(sure)
    assert "chance is 1.000; no share is above it" in sentence
    assert "so few" not in sentence


def test_a_headline_begins_with_what_was_read():
    evaluation = make_evaluation(scope=("Measured on 255 of 6,254 records.",))
    assert write_headline(evaluation)[0] == "Measured on 255 of 6,254 records."
    assert "<li>Measured on 255 of 6,254 records." in render_evaluation(evaluation)
    assert Evaluation.from_dict(describe_evaluation(evaluation)) == evaluation
    many = replace(PAGES["many subjects"](), scope=("Measured on 9 of 10 records.",))
    assert write_headline(many) == many.scope
