"""Tags of words: pieces of words, windows of long sentences, each word answered once, entity scores."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from albert_tf.batches import Batches, bucket_lengths
from albert_tf.errors import InputError
from albert_tf.head_config import HeadConfig
from albert_tf.task_kinds.tags import TagKind
from albert_tf.tasks.examples import TagExample
from albert_tf.tokenization import load_tokenizer
from albert_tf.word_pieces import windows, word_sequences
from tests import toy_vocabulary

HEAD = HeadConfig("tagger", labels=("O", "B-PER", "I-PER", "B-LOC"))


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(toy_vocabulary.number_model())


@pytest.mark.parametrize("vocabulary", ["number_model", "alphabet_model", "wordpiece_vocabulary"])
def test_ids_are_those_of_the_sentence(vocabulary):
    tokenizer = load_tokenizer(getattr(toy_vocabulary, vocabulary)())
    sentences = [line.split() for line in toy_vocabulary.odd_strings() if line.split()]
    sentences = [[word for word in words if tokenizer.encode(word)] for words in sentences]
    made = word_sequences(sentences, tokenizer, 2000, 100)
    ends = np.cumsum(made.sizes)
    for words, end, size in zip(sentences, ends, made.sizes):
        ids = made.input_ids[end - size : end].tolist()
        assert ids == [tokenizer.cls_id, *tokenizer.encode(" ".join(words)), tokenizer.sep_id]


def test_first_pieces_carry_the_tags(tokenizer):
    words, tags = ("the", "qzxv", "house"), ("O", "B-PER", "I-PER")
    features = TagKind(HEAD, max_seq_length=32).features([TagExample("0", words, tags)], tokenizer, training=True)
    counts = [len(tokenizer.encode(word)) for word in words]
    assert max(counts) > 1
    wanted_tags, wanted_words = [-1], [-1]
    for number, (tag, count) in enumerate(zip((0, 1, 2), counts)):
        wanted_tags += [tag] + [-1] * (count - 1)
        wanted_words += [number] + [-1] * (count - 1)
    assert features.per_piece["tag_ids"].tolist() == [*wanted_tags, -1]
    assert features.per_piece["words"].tolist() == [*wanted_words, -1]
    assert features.first_sizes.tolist() == features.sizes.tolist() == [sum(counts) + 2]


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 12).flatmap(lambda r: st.tuples(st.just(r), st.lists(st.integers(1, r), max_size=30))), st.data())
def test_windows_answer_every_word_once(sizes, data):
    room, word_sizes = sizes
    stride = data.draw(st.integers(1, 15))
    made = list(windows(np.array(word_sizes, np.int64), room, stride))
    answered = [word for window in made for word in range(window.first_own, window.end_own)]
    assert answered == list(range(len(word_sizes)))
    for window in made:
        assert window.first <= window.first_own <= window.end_own <= window.end
        assert sum(word_sizes[window.first : window.end]) <= room
    for one, other in zip(made, made[1:]):
        assert one.first < other.first <= one.end < other.end or one.first < other.first <= one.end <= other.end
    if sum(word_sizes) <= room:
        assert len(made) == 1


def test_a_word_is_answered_where_it_has_context_on_both_sides():
    assert list(windows(np.ones(10, np.int64), 6, 4)) == [(0, 6, 0, 5), (4, 10, 5, 10)]
    assert list(windows(np.ones(12, np.int64), 6, 3)) == [(0, 6, 0, 5), (3, 9, 5, 8), (6, 12, 8, 12)]
    assert list(windows(np.array([2, 2, 2]), 2, 1)) == [(0, 1, 0, 1), (1, 2, 1, 2), (2, 3, 2, 3)]


def test_words_without_pieces_and_words_too_long(tokenizer):
    words = ("\u200b", "the", "q" * 40, "")
    assert tokenizer.encode(words[3]) == []
    kind = TagKind(HEAD, max_seq_length=12)
    features = kind.features([TagExample("0", words, ("O",) * 4)], tokenizer, training=True)
    assert features.cut == 1
    assert features.sizes.max() == 12
    assert sorted(features.per_piece["words"][features.per_piece["words"] >= 0].tolist()) == [0, 1, 2, 3]
    assert features.input_ids[features.per_piece["words"] == 3].tolist() == [tokenizer.unk_id]


def test_sentences_are_cut_into_windows_and_put_together_again(tokenizer):
    random = np.random.default_rng(0)
    vocabulary = ("the", "house", "(red)", "[old]", "2,345", "qzxv")
    examples = []
    for number, count in enumerate((0, 1, 5, 60, 200, 3)):
        words = tuple(random.choice(vocabulary, count))
        tags = tuple(random.choice(HEAD.labels, count))
        examples.append(TagExample(str(number), words, tags))
    kind = TagKind(HEAD, max_seq_length=24, doc_stride=10)
    features = kind.features(examples, tokenizer, training=True)
    assert len(features) > len(examples)
    assert features.cut == 0
    # A model that knows every tag of the pieces it is asked about: answers are put back at their words.
    batches = Batches(features, 4, bucket_lengths(24))
    kept = [np.zeros(0)] * len(features)
    for batch in batches.evaluation():
        logits = 5.0 * np.eye(4)[np.maximum(batch["tag_ids"], 0)]
        for row, of_row in zip(batch["row"], kind.kept(logits, batch)["logits"]):
            if row >= 0:
                kept[row] = np.asarray(of_row)[: batches.row_lengths[row]]
    predictions = kind.predictions({"logits": kept}, features, examples)
    assert [(p.id, p.tags) for p in predictions] == [(e.id, e.tags) for e in examples]
    probability = np.exp(5) / (np.exp(5) + 3)
    np.testing.assert_allclose(np.concatenate([p.probabilities for p in predictions]), probability, atol=1e-6)
    scores = kind.scores(examples, predictions, ("entity_f1", "accuracy"))
    assert scores == {"entity_f1": 1.0, "accuracy": 1.0, "entity_f1/LOC": 1.0, "entity_f1/PER": 1.0}


def test_the_loss_is_the_mean_over_words_with_a_tag(tokenizer):
    kind = TagKind(HEAD, max_seq_length=16)
    examples = [TagExample("0", ("the", "qzxv"), ("O", "B-LOC")), TagExample("1", ("the",))]
    features = kind.features(examples, tokenizer, training=False)
    batch = next(iter(Batches(features, 3, bucket_lengths(16)).evaluation_dataset()))
    logits = np.random.default_rng(0).normal(size=(3, 16, 4)).astype(np.float32)
    losses = kind.losses(tf.constant(logits), batch).numpy()
    log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    second = 1 + len(tokenizer.encode("the"))
    assert losses[0] == pytest.approx(-(log_probabilities[0, 1, 0] + log_probabilities[0, second, 3]) / 2, abs=1e-5)
    assert losses[1:].tolist() == [0, 0]


@pytest.mark.parametrize(
    "tags, words",
    [
        (None, "train.txt, line 3: the words have no tags"),
        (("O", "B-ORG"), "line 3: the label is 'B-ORG', but must be one of O, B-PER"),
        (("O",), "line 3: 2 words, but 1 tags"),
    ],
)
def test_sentences_that_cannot_be_learned(tags, words, tokenizer):
    example = TagExample("0", ("the", "house"), tags, "train.txt, line 3")
    with pytest.raises(InputError, match=words):
        TagKind(HEAD, max_seq_length=16).features([example], tokenizer, training=True)


def test_settings():
    assert TagKind(HEAD, max_seq_length=128).settings == {"max_seq_length": 128, "doc_stride": 64}
    with pytest.raises(InputError, match="doc_stride is 0"):
        TagKind(HEAD, max_seq_length=128, doc_stride=0)
    with pytest.raises(InputError, match="max_seq_length is 2"):
        TagKind(HEAD, max_seq_length=2)


def test_a_wrong_tag_is_told_with_the_line_of_its_word(tokenizer):
    places = ("train.txt, line 3", "train.txt, line 4")
    example = TagExample("0", ("the", "house"), ("O", "B-ORG"), places[0], places)
    with pytest.raises(InputError, match="train.txt, line 4: the label is 'B-ORG', but must be one of O, B-PER"):
        TagKind(HEAD, max_seq_length=16).features([example], tokenizer, training=True)
