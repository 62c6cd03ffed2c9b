"""albert_tf.prediction_page: what is shown, in what order, and that no text can be anything but text."""

from __future__ import annotations

import html.parser
import math
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings

from albert_tf import prediction_page
from albert_tf.errors import InputError
from albert_tf.inspection.judgement import judge
from albert_tf.inspection.marking import marked
from albert_tf.tasks.examples import (
    AnswerPrediction,
    ChoiceExample,
    ChoicePrediction,
    GoldAnswer,
    QuestionExample,
    TagExample,
    TagPrediction,
    TextExample,
    TextPrediction,
)
from tests.toy_vocabulary import odd_text

TEXT_TAGS = set("p bdi span mark small b article header main h1 h2 ul li ol table thead tbody tr th td".split())
KNOWN_TAGS = TEXT_TAGS | set(
    "html head meta title style body script div label input details summary i svg line circle text".split()
)
VOID = {"meta", "input"}
LABELS = ("no", "yes")


class Page(html.parser.HTMLParser):
    """A page read as browsers do: whatever is not balanced, or is no part of a page of predictions, fails."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[str] = []
        self.articles: list[str] = []
        self.marks: list[tuple[str, str]] = []
        self.cells: list[str] = []
        self.text = ""
        self._open: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attributes):
        assert tag in KNOWN_TAGS, tag
        values = dict(attributes)
        assert not {"src", "href", "onclick", "onload", "onerror"} & set(values)
        self.tags.append(tag)
        if tag == "article":
            self.articles.append("")
        if tag == "mark" and self.articles:  # the legend above has some too
            self.marks.append((values["class"], ""))
        if tag in ("td", "th"):
            self.cells.append("")
        if tag not in VOID:
            self._open.append((tag, values.get("class") or ""))

    def handle_endtag(self, tag):
        assert self._open and self._open.pop()[0] == tag

    def handle_data(self, data):
        names = [name for name, _ in self._open]
        self.text += "" if names[-1:] in (["style"], ["script"]) else data
        if "article" in names:
            self.articles[-1] += data
            if "mark" in names:
                self.marks[-1] = (self.marks[-1][0], self.marks[-1][1] + data)
        if names and "table" in names and {"td", "th"} & set(names):
            self.cells[-1] += data


def read(*arguments, **settings) -> Page:
    text = prediction_page.page(*arguments, **settings)
    page = Page(text)
    assert page.tags.count("script") == 1
    return page


def text_prediction(example: TextExample, yes: float) -> TextPrediction:
    return TextPrediction(example.id, LABELS[yes > 0.5], np.array([1 - yes, yes], np.float32))


def ids(page: Page) -> list[str]:
    return [re.search(r"id (\S+?)(,|\n|$)", text, re.MULTILINE)[1] for text in page.articles]


# The order


def test_the_worst_come_first():
    gold = ["yes", "no", "yes", "no", "yes"]
    yes = [0.9, 0.7, 0.2, 0.1, 0.55]
    examples = [TextExample(f"e{i}", "a text", None, label) for i, label in enumerate(gold)]
    predictions = [text_prediction(*pair) for pair in zip(examples, yes)]
    page = read("t", examples, predictions, labels=LABELS)
    of_gold = [p if label == "yes" else 1 - p for p, label in zip(yes, gold)]
    assert ids(page) == [f"e{i}" for i in np.argsort(of_gold)]
    assert "2 (40.0%)" in page.text and "e2" in page.articles[0] and "0.200" in page.articles[0]
    assert [text.startswith("\nwrong") for text in page.articles] == [True, True, False, False, False]


def test_numbers_are_sorted_by_their_distance():
    gold, predicted = [1.0, 2.0, 3.0, 4.0], [1.5, 0.0, 3.1, 4.0]
    examples = [TextExample(f"e{i}", "a", "b", value) for i, value in enumerate(gold)]
    page = read("t", examples, [TextPrediction(e.id, value) for e, value in zip(examples, predicted)])
    assert ids(page) == ["e1", "e0", "e2", "e3"]
    assert "-2.000" in page.articles[0]


def test_the_rest_is_counted():
    examples = [TextExample(f"e{i}", "a text", None, "yes") for i in range(30)]
    predictions = [text_prediction(e, i / 30) for i, e in enumerate(examples)]
    page = read("t", examples, predictions, labels=LABELS, max_rows=7)
    assert ids(page) == [f"e{i}" for i in range(7)]
    assert "The other 23 are left out" in page.text
    assert "left out" not in read("t", examples, predictions, labels=LABELS).text


def test_without_labels_the_least_certain_come_first():
    examples = [TextExample(f"e{i}", "a text") for i in range(3)]
    page = read("t", examples, [text_prediction(e, p) for e, p in zip(examples, [0.9, 0.45, 0.3])], labels=LABELS)
    assert ids(page) == ["e1", "e2", "e0"]
    assert "gold" not in page.text and "only errors" not in page.text


def test_nothing_to_show_is_a_page_too():
    assert read("t", [], []).articles == []


def test_what_does_not_belong_together_is_refused():
    example = TextExample("e", "a")
    with pytest.raises(ValueError, match="1 examples and 0 predictions"):
        prediction_page.page("t", [example], [])
    with pytest.raises(TypeError, match="AnswerPrediction is no answer to a TextExample"):
        prediction_page.page("t", [example], [AnswerPrediction("e", "", -1, -1, 0.5)])


# What the gold label got


@pytest.mark.parametrize(
    ("gold", "predicted", "probabilities", "is_right", "expected"),
    [
        ("b", "a", [0.7, 0.2, 0.1], False, 0.2),
        ("a", "a", [0.7, 0.2, 0.1], True, 0.7),
        ("unheard", "a", [0.7, 0.2, 0.1], False, 0.0),
        (("a", "c"), ("a",), [0.7, 0.2, 0.1], False, 0.1),
        (("a",), ("a",), [0.7, 0.4, 0.1], True, 0.6),
        ((), (), [0.3, 0.2, 0.1], True, 0.7),
    ],
)
def test_probability_of_classes(gold, predicted, probabilities, is_right, expected):
    prediction = TextPrediction("e", predicted, np.array(probabilities))
    found = judge(TextExample("e", "t", None, gold), prediction, ("a", "b", "c"))
    assert found.is_right is is_right and found.gold_probability == pytest.approx(expected)


def test_probability_of_a_choice():
    prediction = ChoicePrediction("e", 0, np.array([0.6, 0.3, 0.1]))
    assert judge(ChoiceExample("e", "p", "q", ("a", "b", "c"), 1), prediction)[:2] == (False, 0.3)


CONTEXT = "The red door of the old house is open."
N_BEST = tuple(
    {"text": CONTEXT[a:b], "probability": p, "start": a, "end": b}
    for a, b, p in [(0, 12, 0.5), (4, 12, 0.3), (16, 29, 0.2)]
)


@pytest.mark.parametrize(
    ("answers", "null_odds", "text", "is_right", "expected"),
    [
        ((("red door", 4),), None, "The red door", True, 0.8),  # the article does not count
        ((("old house", 20), ("red door", 4)), None, "The red door", True, 1.0),
        ((("open", 33),), None, "The red door", False, 0.0),
        ((("red door", 4),), math.log(3), "", False, 0.2),  # three quarters say no answer
        ((), math.log(3), "", True, 0.75),
        ((), -math.log(3), "The red door", False, 0.25),
        ((), None, "The red door", False, 0.0),
    ],
)
def test_probability_of_answers(answers, null_odds, text, is_right, expected):
    example = QuestionExample("e", "q", CONTEXT, tuple(GoldAnswer(*answer) for answer in answers))
    prediction = AnswerPrediction("e", text, 0 if text else -1, 12 if text else -1, 0.5, null_odds, N_BEST)
    found = judge(example, prediction)
    assert found.is_right is is_right and found.gold_probability == pytest.approx(expected)


@pytest.mark.parametrize(
    ("metric", "is_right"), [("cmrc_f1", True), ("characters_f1", False), ("f1", False), (None, False)]
)
def test_answers_are_right_as_the_first_score_counts(metric, is_right):
    best = ({"text": "北京。", "probability": 0.75, "start": 0, "end": 3},)
    prediction = AnswerPrediction("e", "北京。", 0, 3, 0.75, None, best)
    example = QuestionExample("e", "哪里？", "北京。", (GoldAnswer("北京", 0),))
    page = read("t", [example], [prediction], scores={metric: 1.0, "exact_match": 0.0} if metric else None)
    assert page.articles[0].startswith("\nright" if is_right else "\nwrong")
    assert f"the gold one {0.75 * is_right:.3f}" in page.articles[0]


def test_probability_of_tags():
    example = TagExample("e", ("a", "b", "c", "d"), ("O", "B-X", "O", "O"))
    prediction = TagPrediction("e", ("O", "B-Y", "O", "O"), (0.9, 0.8, 0.6, 0.7))
    assert judge(example, prediction)[:2] == (False, pytest.approx(0.2))


# What is shown above


def test_the_confusion_matrix_is_scikit_learns():
    from sklearn.metrics import confusion_matrix, recall_score

    draw = np.random.default_rng(0)
    names = ["a", "b", "c"]
    gold, predicted = ([names[i] for i in draw.integers(0, 3, 50)] for _ in range(2))
    examples = [TextExample(str(i), "t", None, label) for i, label in enumerate(gold)]
    predictions = [TextPrediction(str(i), label, np.ones(3) / 3) for i, label in enumerate(predicted)]
    cells = read("t", examples, predictions, labels=names).cells
    assert cells[:6] == ["", *names, "all", "recall"]
    rows = np.array(cells[6:]).reshape(3, 6)
    np.testing.assert_array_equal(rows[:, 0], names)
    np.testing.assert_array_equal(rows[:, 1:4].astype(int), confusion_matrix(gold, predicted, labels=names))
    recalls = recall_score(gold, predicted, labels=names, average=None)
    np.testing.assert_allclose(rows[:, 5].astype(float), recalls, atol=5e-4)


def test_many_labels_give_the_most_frequent_confusions():
    names = [f"n{i}" for i in range(40)]
    pairs = [("n1", "n2")] * 3 + [("n5", "n1")] * 2 + [(name, name) for name in names]
    examples = [TextExample(str(i), "t", None, gold) for i, (gold, _) in enumerate(pairs)]
    predictions = [TextPrediction(str(i), predicted, np.eye(40)[0]) for i, (_, predicted) in enumerate(pairs)]
    page = read("t", examples, predictions, labels=names)
    assert page.cells == ["gold", "predicted", "times", "n1", "n2", "3", "n5", "n1", "2"]


def test_each_label_of_several_is_as_scikit_learn_counts():
    from sklearn.metrics import precision_score, recall_score

    draw = np.random.default_rng(1)
    gold, predicted = draw.random((2, 40, 3)) < 0.4
    names = ("x", "y", "z")
    examples = [TextExample(str(i), "t", None, tuple(np.array(names)[row])) for i, row in enumerate(gold)]
    predictions = [TextPrediction(str(i), tuple(np.array(names)[row]), row * 0.9) for i, row in enumerate(predicted)]
    rows = np.array(read("t", examples, predictions, labels=names).cells[6:]).reshape(3, 6)
    np.testing.assert_array_equal(rows[:, 1].astype(int), gold.sum(0))
    np.testing.assert_allclose(rows[:, 4].astype(float), precision_score(gold, predicted, average=None), atol=5e-4)
    np.testing.assert_allclose(rows[:, 5].astype(float), recall_score(gold, predicted, average=None), atol=5e-4)


def test_numbers_are_plotted_where_they_are():
    points = [(0.0, 0.5), (2.5, 2.5), (5.0, 4.0)]
    examples = [TextExample(str(i), "a", "b", gold) for i, (gold, _) in enumerate(points)]
    text = prediction_page.page("t", examples, [TextPrediction(str(i), value) for i, (_, value) in enumerate(points)])
    dots = np.array(re.findall(r'class="dot" cx="([\d.]+)" cy="([\d.]+)"', text), float)
    (even,) = np.array(re.findall(r'class="even" x1="(.*?)" y1="(.*?)" x2="(.*?)" y2="(.*?)"', text), float)
    np.testing.assert_allclose(dots[1], [(even[0] + even[2]) / 2, (even[1] + even[3]) / 2], atol=0.1)
    scale = (even[2] - even[0]) / 5  # the axes go from 0 to 5
    np.testing.assert_allclose(dots[0], [even[0], even[1] - 0.5 * scale], atol=0.1)
    np.testing.assert_allclose(dots[2], [even[2], even[1] - 4.0 * scale], atol=0.1)


def test_scores_are_at_the_top():
    page = read("SST-2 <dev>", [], [], scores={"accuracy": 0.91234})
    assert "SST-2 <dev>" in page.text and "0.9123accuracy" in page.text


# The kinds of rows


def question(prediction: AnswerPrediction, answers, context: str = CONTEXT) -> Page:
    gold = None if answers is None else tuple(GoldAnswer(*answer) for answer in answers)
    return read("t", [QuestionExample("e", "which one?", context, gold)], [prediction])


def test_answers_are_marked_in_the_context():
    page = question(AnswerPrediction("e", "red door", 4, 12, 0.5, None, N_BEST), [("door of", 8), ("open", 33)])
    assert page.marks == [("predicted", "red "), ("both", "door"), ("gold", " of"), ("gold", "open")]
    assert "gold door of or open" in page.articles[0] and "predicted red door" in page.articles[0]
    assert "the 3 best answers0.500The red door0.300red doorpredicted0.200the old house" in page.articles[0]


def test_a_gold_answer_is_marked_where_it_stands():
    for start in (-1, 6, 30):
        page = question(AnswerPrediction("e", "", -1, -1, 0.9, 2.0, N_BEST), [("red", start)])
        assert page.marks == [("gold", "red")]


def test_no_answer_is_said():
    page = question(AnswerPrediction("e", "", -1, -1, 0.9, 2.0, N_BEST), [])
    assert page.marks == [] and page.articles[0].count("no answer") == 3 and "0.881" in page.articles[0]
    page = question(AnswerPrediction("e", "open", 33, 37, 0.9, -2.0, N_BEST), None)
    assert page.marks == [("predicted", "open")] and "gold" not in page.articles[0]


def test_a_long_context_is_folded_around_its_marks():
    context = " ".join(f"word{i}" for i in range(5000))
    start, gold = context.index("word4000"), context.index("word77 ")
    page = question(AnswerPrediction("e", "word4000", start, start + 8, 0.5), [("word77", gold)], context)
    assert page.marks == [("gold", "word77"), ("predicted", "word4000")] * 2
    shown, whole = page.articles[0].split("the whole context, 5,000 words")
    assert context in whole and len(shown) < 1200


def test_answers_outside_of_the_context_do_no_harm():
    """The files of CMRC 2018 have some."""
    for start in (-1, 30, 38, 99):
        page = question(AnswerPrediction("e", "red", 4, 7, 0.5), [("an answer that is not there", start)])
        assert "".join(page.articles).count("house") == 1


@given(text=odd_text())
@settings(max_examples=50, deadline=None)
def test_marks_change_no_character(text):
    context = text + "x" * 20
    page = Page(f"<article>{marked(context, [(0, 3), (len(text), len(text) + 5)], (2, 9))}</article>")
    assert page.articles == [visible(context)]


def test_choices_have_all_their_probabilities():
    example = ChoiceExample("e", "A passage.", "Which?", ("one", "two", "three"), 1, "high")
    page = read("t", [example], [ChoicePrediction("e", 2, np.array([0.25, 0.35, 0.4]))])
    found = re.findall(r"(0\.\d{3})([ABC])\. (one|two|three)(gold)?(predicted)?", page.articles[0])
    assert found == [
        ("0.250", "A", "one", "", ""),
        ("0.350", "B", "two", "gold", ""),
        ("0.400", "C", "three", "", "predicted"),
    ]
    assert "group high" in page.articles[0]


def test_tags_stand_in_the_sentence():
    example = TagExample("e", ("Ann", "likes", "Rome", "now"), ("B-PER", "O", "B-LOC", "O"))
    prediction = TagPrediction("e", ("B-PER", "O", "B-ORG", "O"), (0.9, 0.8, 0.7, 0.6))
    article = read("t", [example], [prediction]).articles[0]
    assert "AnnB-PER 0.90 likes RomeB-ORG 0.70gold B-LOC now" in article and "0.80" not in article
    assert "wrong tags 1 of 4" in article


# Texts are texts


def visible(text: str) -> str:
    """A text as the page has it: control characters as their pictures."""
    text = text.replace("\r\n", "\n")
    return "".join(
        chr(0x2400 + ord(c)) if ord(c) < 32 and c not in "\t\n" else {"\x7f": "\u2421"}.get(c, c) for c in text
    )


HOSTILE = [
    "<script>alert(1)</script>",
    "</p></article></main><h1>",
    '"><img src=x onerror=alert(1)>',
    "<!-- <style> ]]> &lt; &amp;amp; &#0;",
    "a\0b\x1bc\x7fd\rnew\r\nline\ttab",
    "😀 👩\u200d👩\u200d👧 שלום مرحبا \u202egnp.txt",
    "\ufeff  leading and trailing  ",
    "",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_everywhere(text):
    labels = (text, "other")
    probabilities = np.array([0.3, 0.7], np.float32)
    about = {"id": text, "place": text}
    cases = [
        (TextExample(text_a=text, text_b=text, label=text, **about), TextPrediction(text, "other", probabilities)),
        (TextExample(text_a=text, label=(text,), **about), TextPrediction(text, (text, "other"), probabilities)),
        (ChoiceExample(passage=text, question=text, choices=(text, text), label=0, group=text, **about),
         ChoicePrediction(text, 1, probabilities)),
        (QuestionExample(question=text, context=text, answers=(GoldAnswer(text, 0),), title=text, **about),
         AnswerPrediction(text, text, 0, len(text), 0.5, 0.1, ({"text": text, "probability": 1.0},))),
        (TagExample(words=(text, text), tags=(text, "O"), **about), TagPrediction(text, ("O", text), (0.5, 0.5))),
    ]  # fmt: skip
    for example, prediction in cases:
        page = read(text, [example], [prediction], labels=labels, scores={text: 0.5})
        assert page.articles[0].count(visible(text)) >= 2
        prediction_page.page(text, [example], [prediction], labels=labels).encode("utf-8")


def test_a_lone_surrogate_can_be_written(tmp_path):
    example = TextExample("e", "a \ud800 b", None, "yes")
    prediction_page.write(tmp_path / "page.html", "t", [example], [text_prediction(example, 0.2)], labels=LABELS)
    assert "a \ufffd b" in (tmp_path / "page.html").read_text("utf-8")
    assert os.listdir(tmp_path) == ["page.html"]


@given(text=odd_text())
@settings(max_examples=50, deadline=None)
def test_any_text_is_shown_as_it_is(text):
    page = read(
        "t",
        [TextExample("e", text + "|", None, "yes")],
        [TextPrediction("e", "no", np.array([0.6, 0.4]))],
        labels=LABELS,
    )
    assert visible(text + "|") in page.articles[0]


def test_a_directory_in_the_way_is_told(tmp_path):
    with pytest.raises(InputError, match="page.html"):
        (tmp_path / "page.html").mkdir()
        prediction_page.write(tmp_path / "page.html", "t", [], [])


def test_pages_need_no_tensorflow(repository):
    pages = "albert_tf.prediction_page, albert_tf.seeds_page, albert_tf.training_page"
    code = f"import sys, {pages}; print('tensorflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


def test_real_files_make_whole_pages(shared):
    """Texts as they come, every kind of task that is here."""
    from albert_tf.tasks.catalogue import find_task

    draw = np.random.default_rng(0)
    for name, path in [
        ("squad2.0", "squad/dev_slice-v2.0.json"),
        ("squad1.1", "squad/xquad.zh.json"),
        ("cmrc2018", "squad/cmrc2018_trial.zh.json"),
        ("dream", "multiple_choice/dream_dev_slice.json"),
        ("qnli", "glue/QNLI/dev.tsv"),
    ]:
        task = find_task(name)
        examples = task.read(str(shared / "data" / path))[:100]
        predictions = []
        for example in examples:
            if isinstance(example, QuestionExample):
                start = int(draw.integers(len(example.context)))
                text = example.context[start : start + 9]
                predictions.append(AnswerPrediction(example.id, text, start, start + len(text), 0.5, 0.0))
            elif isinstance(example, ChoiceExample):
                predictions.append(ChoicePrediction(example.id, 0, draw.dirichlet(np.ones(len(example.choices)))))
            else:
                predictions.append(
                    TextPrediction(example.id, task.labels[0], draw.dirichlet(np.ones(len(task.labels))))
                )
        assert len(read(name, examples, predictions, labels=task.labels).articles) == len(examples)
