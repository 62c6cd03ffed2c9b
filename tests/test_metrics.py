"""Metrics against recorded numbers of the released code, scikit-learn, SciPy, and a naive reading of entities."""

from __future__ import annotations

import json
import logging
import math
import warnings

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf import entity_metrics, metrics
from albert_tf.entity_metrics import Entity
from albert_tf.errors import InputError


@pytest.mark.parametrize("task", ["mnli", "cola", "sts-b"])
def test_the_released_metrics(shared, task):
    folder = shared / "fixtures/glue_metrics"
    expected = json.loads((folder / "expected.json").read_text())["metrics"][task]
    with np.load(folder / "inputs.npz") as arrays:
        real = arrays[f"{task}/is_real_example"] > 0
        logits, labels = arrays[f"{task}/logits"][real], arrays[f"{task}/label_ids"][real]
    if task == "sts-b":
        scores = metrics.compute(("pearson", "mean_squared_error"), labels, logits)
        assert scores["pearson"] == pytest.approx(expected["pearson"], abs=1e-6)
        assert scores["mean_squared_error"] == pytest.approx(expected["MSE"], abs=1e-6)
        return
    scores = metrics.compute(("accuracy", "matthews"), labels, logits.argmax(-1))
    assert scores["accuracy"] == pytest.approx(expected["eval_accuracy"], abs=1e-6)
    if task == "cola":
        assert scores["matthews"] == pytest.approx(expected["matthew_corr"], abs=1e-6)


pairs_of_classes = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=40)


@settings(max_examples=100, deadline=None)
@given(pairs_of_classes)
def test_classes_against_scikit_learn(pairs):
    labels, predictions = np.array(pairs).T
    assert metrics.accuracy(labels, predictions) == pytest.approx(np.mean(labels == predictions))
    binary = (labels == 1, predictions == 1)
    assert metrics.f1(labels, predictions) == pytest.approx(sklearn.metrics.f1_score(*binary, zero_division=0))
    assert metrics.macro_f1(labels, predictions) == pytest.approx(
        sklearn.metrics.f1_score(labels, predictions, average="macro", zero_division=0)
    )
    assert metrics.micro_f1(labels, predictions) == pytest.approx(
        sklearn.metrics.f1_score(labels, predictions, average="micro", zero_division=0)
    )
    assert metrics.accuracy_and_f1(labels, predictions) == pytest.approx(
        (np.mean(labels == predictions) + metrics.f1(labels, predictions)) / 2
    )


@settings(max_examples=100, deadline=None)
@given(pairs_of_classes)
def test_matthews_from_its_definition(pairs):
    labels, predictions = (np.array(values) > 0 for values in zip(*pairs))
    tp, tn = np.sum(labels & predictions), np.sum(~labels & ~predictions)
    fp, fn = np.sum(~labels & predictions), np.sum(labels & ~predictions)
    below = math.sqrt(float((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)))
    wanted = (tp * tn - fp * fn) / below if below else 0.0
    assert metrics.matthews(labels.astype(int), predictions.astype(int)) == pytest.approx(wanted)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 12), st.integers(1, 4), st.integers(0, 99))
def test_several_labels_against_scikit_learn(rows, columns, seed):
    labels, predictions = np.random.default_rng(seed).integers(0, 2, (2, rows, columns + 1))
    assert metrics.accuracy(labels, predictions) == pytest.approx(sklearn.metrics.accuracy_score(labels, predictions))
    for name, average in (("micro_f1", "micro"), ("macro_f1", "macro"), ("f1", "micro")):
        wanted = sklearn.metrics.f1_score(labels, predictions, average=average, zero_division=0)
        assert metrics.METRICS[name](labels, predictions) == pytest.approx(wanted)


def mean_ranks(values: np.ndarray) -> np.ndarray:
    return np.array([(np.sum(values < v) + np.sum(values <= v) + 1) / 2 for v in values])


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a - a.mean(), b - b.mean()
    return float((a * b).sum() / math.sqrt((a * a).sum() * (b * b).sum()))


@pytest.mark.parametrize("seed", range(5))
def test_correlations_from_their_definitions(seed):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 6, 30) / 2  # with ties
    predictions = (labels + random.normal(0, 1, 30)).astype(np.float32).round(1)
    wanted = correlation(labels, predictions.astype(float))
    ranked = correlation(mean_ranks(labels), mean_ranks(predictions))
    assert metrics.pearson(labels, predictions) == pytest.approx(wanted, abs=1e-9)
    assert metrics.spearman(labels, predictions) == pytest.approx(ranked, abs=1e-9)
    assert metrics.pearson_and_spearman(labels, predictions) == pytest.approx((wanted + ranked) / 2, abs=1e-9)


@pytest.mark.parametrize("name", ["pearson", "spearman", "matthews"])
@pytest.mark.parametrize("labels, predictions", [([1, 0, 1], [1, 1, 1]), ([1, 1], [0, 1]), ([1], [1])])
def test_a_constant_side_gives_0(name, labels, predictions, caplog):
    with caplog.at_level(logging.WARNING, logger="absl"), warnings.catch_warnings():
        warnings.simplefilter("error")  # the libraries have their own
        assert metrics.METRICS[name](labels, predictions) == 0.0
    assert ("undefined" in caplog.text) == (name != "matthews")


def test_f1_where_nobody_says_yes():
    assert metrics.f1([0, 0], [0, 0]) == 0.0
    assert metrics.f1([0, 1], [0, 0]) == 0.0


def test_what_cannot_be_scored():
    with pytest.raises(InputError, match="there is no metric 'acuracy'.*accuracy, f1"):
        metrics.compute(("acuracy",), [1], [1])
    with pytest.raises(InputError, match="no example has a label"):
        metrics.compute(("accuracy",), [], [])
    with pytest.raises(ValueError, match="shape"):
        metrics.accuracy([1, 2], [1])
    with pytest.raises(ValueError, match="finite"):
        metrics.pearson([1, 2], [math.nan, 1])


WORKED = [  # as conlleval and seqeval read them
    ("B-PER I-PER O B-LOC", [("PER", 0, 1), ("LOC", 3, 3)]),
    ("I-PER I-PER B-PER O", [("PER", 0, 1), ("PER", 2, 2)]),
    ("B-PER I-LOC I-LOC", [("PER", 0, 0), ("LOC", 1, 2)]),
    ("O I-PER E-PER I-PER", [("PER", 1, 2), ("PER", 3, 3)]),
    ("S-PER S-PER B-LOC E-LOC", [("PER", 0, 0), ("PER", 1, 1), ("LOC", 2, 3)]),
    ("U-PER B-LOC I-LOC L-LOC O", [("PER", 0, 0), ("LOC", 1, 3)]),
    ("PER PER LOC O", [("PER", 0, 1), ("LOC", 2, 2)]),
    ("B-MISC-X I-MISC-X", [("MISC-X", 0, 1)]),
    ("B I O", [("_", 0, 1)]),
    ("O O", []),
    ("", []),
]


@pytest.mark.parametrize("tags, wanted", WORKED)
def test_entities(tags, wanted):
    assert entity_metrics.entities([tags.split()]) == {Entity(0, *each) for each in wanted}


@pytest.mark.parametrize(
    "scheme, tags, wanted",
    [
        ("IOB2", "B-PER I-PER O I-LOC B-LOC I-PER", [("PER", 0, 1), ("LOC", 4, 4)]),
        ("IOB2", "B-PER B-PER I-PER", [("PER", 0, 0), ("PER", 1, 2)]),
        ("BIOES", "B-PER I-PER E-PER S-LOC B-LOC O I-PER E-PER", [("PER", 0, 2), ("LOC", 3, 3)]),
        ("BIOES", "B-PER E-LOC S-PER I-PER E-PER", [("PER", 2, 2)]),
        ("IOB1", "I-PER I-PER B-PER I-PER I-LOC", [("PER", 0, 1), ("PER", 2, 3), ("LOC", 4, 4)]),
        ("IOB1", "O B-PER I-PER", [("PER", 2, 2)]),
    ],
)
def test_strict_entities(scheme, tags, wanted):
    assert entity_metrics.strict_entities([tags.split()], scheme) == {Entity(0, *each) for each in wanted}


def spans_by_hand(tags: list[str]) -> set[tuple[str, int, int]]:
    """Tries every span: all of one type, begun at its first word alone, and not to be made longer."""

    def begins(at: int) -> bool:
        if tags[at] == "O":
            return False
        prefix, type_ = tags[at].split("-")
        before = tags[at - 1] if at else "O"
        return prefix in "BS" or before == "O" or before[2:] != type_ or before[0] in "ES"

    spans = set()
    for first in range(len(tags)):
        for last in range(first, len(tags)):
            inside = [tag != "O" and tag[2:] == tags[first][2:] for tag in tags[first : last + 1]]
            begun = [begins(at) for at in range(first, last + 1)]
            ended = last + 1 == len(tags) or tags[last + 1] == "O" or begins(last + 1)
            if all(inside) and begun[0] and not any(begun[1:]) and ended:
                spans.add((tags[first][2:], first, last))
    return spans


any_tags = st.lists(st.sampled_from(["O", *(f"{p}-{t}" for p in "BIES" for t in ("PER", "LOC"))]), max_size=9)


@settings(max_examples=300, deadline=None)
@given(any_tags)
def test_entities_against_a_naive_reading(tags):
    assert entity_metrics.entities([tags]) == {Entity(0, *span) for span in spans_by_hand(tags)}


@st.composite
def tagged_well(draw, scheme: str) -> tuple[list[str], set[Entity]]:
    """Tags without errors, and the entities they were made of."""
    tags, made, before = [], set(), "O"
    for size, type_ in draw(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["PER", "LOC"])), max_size=5)):
        if size == 0:
            tags.append("O")
            before = "O"
            continue
        made.add(Entity(0, type_, len(tags), len(tags) + size - 1))
        prefixes = ["B"] + ["I"] * (size - 1)
        if scheme == "BIOES":
            prefixes = ["S"] if size == 1 else ["B"] + ["I"] * (size - 2) + ["E"]
        if scheme == "IOB1" and before != type_:
            prefixes = ["I"] * size
        tags += [f"{prefix}-{type_}" for prefix in prefixes]
        before = type_
    return tags, made


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["IOB1", "IOB2", "BIOES"]).flatmap(lambda s: st.tuples(st.just(s), tagged_well(s))))
def test_tags_without_errors_read_the_same_in_both_ways(case):
    scheme, (tags, made) = case
    assert entity_metrics.entities([tags]) == entity_metrics.strict_entities([tags], scheme) == made


@pytest.mark.parametrize(
    "tags, scheme",
    [("B-PER I-PER O", "IOB2"), ("I-PER O", "IOB1"), ("S-PER O", "BIOES"), ("B-A L-A", "BIOES"), ("O", "IOB2")],
)
def test_the_scheme_is_told_by_the_tags(tags, scheme):
    assert entity_metrics.scheme_of([tags.split()]) == scheme


def test_entity_scores():
    labels = ["B-PER I-PER O B-LOC".split(), "O B-LOC O".split(), "B-PER O".split()]
    predictions = ["B-PER I-PER O B-PER".split(), "O B-LOC I-LOC".split(), "I-PER O".split()]
    by_type = entity_metrics.counts(labels, predictions)
    assert by_type == {"LOC": (2, 1, 0), "PER": (2, 3, 2)}
    assert (by_type["PER"].precision, by_type["PER"].recall) == (2 / 3, 1.0)
    assert metrics.compute(("entity_f1", "entity_precision", "entity_recall"), labels, predictions) == {
        "entity_f1": 0.5,
        "entity_precision": 0.5,
        "entity_recall": 0.5,
    }
    assert metrics.METRICS["strict_entity_f1"](labels, predictions) == pytest.approx(2 * 1 / (4 + 3))
    assert entity_metrics.total(entity_metrics.counts([["O"]], [["O"]])).f1 == 0.0
    with pytest.raises(ValueError, match="same words"):
        entity_metrics.counts([["O"]], [["O", "O"]])
