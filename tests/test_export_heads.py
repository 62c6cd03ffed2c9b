"""SavedModels of every head, asked by a process that knows nothing of this package, against the objects for strings."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf.exporting import blocks, saved_model
from tests import exported_models, toy_vocabulary
from tests.exported_models import HEADS, kind_of, make

ODD = toy_vocabulary.odd_strings()[:14]
TEXTS = ["a x b", "", "CAFÉ 😀 a\x00b", "word " * 300, "b y", "x", *ODD]
CONTEXTS = [
    "the cat sat in ulm and bern",
    "",
    " \t ",
    "  Σ CAFÉ 😀 a\x00b and ½ more ",
    "words to say " * 60,
    "x",
    *ODD,
]
QUESTIONS = ["where", "", "who is it " * 30, "q", "what", "x", *ODD[::-1]]
PASSAGES, ASKED = ["a b c", "", "word " * 500], ["what _ is _", "", "why " * 60]
OPTIONS = [["a", "b", "c d"], ["x", "y", ""], ["_", "b" * 90, "é"]]
GAPS = ["a [MASK] b", "[MASK]", "no", "", "x[MASK]y [MASK]é [MASK] ", "[MASK][MASK]"]
INPUTS = {
    "AlbertModel": {"text": TEXTS},
    "AlbertForMaskedLM": {"text": GAPS},
    "AlbertForPreTraining": {"text": GAPS},
    "AlbertForSequenceClassification": {"text": TEXTS},
    "AlbertForMultipleChoice": {"passage": PASSAGES, "question": ASKED, "options": OPTIONS},
    "AlbertForQuestionAnswering": {"question": QUESTIONS, "context": CONTEXTS},
    "AlbertForAnswerableQuestionAnswering": {"question": QUESTIONS, "context": CONTEXTS},
    "AlbertForTokenClassification": {"text": TEXTS},
}
# All heads have this signature from one function: with a pooler, without one, and with a task that tells the length.
EMBEDDED = ["AlbertModel", "AlbertForMaskedLM", "AlbertForSequenceClassification"]
MOST_ALONE = 9  # rows of a head that are asked one by one, too
IDS = {"input_ids": [[2, 9, 4, 9, 3, 7, 8, 3]], "input_mask": [[1] * 8], "segment_ids": [[0] * 5 + [1] * 3]}


def alone_of(name: str) -> int:
    return min(MOST_ALONE, len(next(iter(INPUTS[name].values()))))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("exported")


@pytest.fixture(scope="module")
def answers(folder):
    """By class: the model, its tokenizer, all rows at once, row by row, the other signatures; moved and saved anew."""
    models, requests = {}, []
    for name in HEADS:
        model, tokenizer = models[name] = make(name)
        saved_model.export_saved_model(folder / "before" / name, model, tokenizer, kind=kind_of(model))
        inputs = INPUTS[name]
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / "before" / name).rename(folder / name)
        requests.append((name, "serving_default", inputs))
        requests += [
            (name, "serving_default", {k: [v[row]] for k, v in inputs.items()}) for row in range(alone_of(name))
        ]
        requests.append((name, "ids", IDS))
        requests += [(name, "embeddings", {"text": TEXTS})] * (name in EMBEDDED)
    replies = iter(exported_models.ask(folder, requests))
    found = {}
    for name in HEADS:
        together, alone = next(replies), [next(replies) for _ in range(alone_of(name))]
        found[name] = (*models[name], together, alone, next(replies), next(replies) if name in EMBEDDED else None)
    return found


def test_the_other_tensorflow_answers_the_same(folder, answers):
    python = exported_models.python_of_the_other_stack()
    names = ["AlbertForSequenceClassification", "AlbertForQuestionAnswering"]
    requests = [(name, "serving_default", INPUTS[name]) for name in names]
    for name, found in zip(names, exported_models.ask(folder, requests, python=python)):
        wanted = answers[name][2]
        assert set(found) == set(wanted)
        for key, values in wanted.items():
            if np.array(values).dtype.kind == "f":
                np.testing.assert_allclose(found[key], values, atol=1e-5, err_msg=key)
            else:
                assert found[key] == values, key


@pytest.mark.parametrize("count", [0, 31, 64, 70])
def test_no_more_rows_are_read_at_a_time_than_a_block_has(count):
    def model(inputs, training):
        rows = tf.shape(inputs["input_ids"])[0]
        return {"rows": tf.fill([rows], rows), "ids": inputs["input_ids"]}

    ids = tf.reshape(tf.range(3 * count), [count, 3])
    for function in (blocks.head_outputs, tf.function(blocks.head_outputs, autograph=False)):
        outputs = function(model, {"input_ids": ids})
        assert outputs["rows"].numpy().tolist() == [min(32, count - row // 32 * 32) for row in range(count)]
        np.testing.assert_array_equal(outputs["ids"], ids)


@pytest.mark.parametrize("name", HEADS)
def test_a_row_answers_the_same_alone_and_in_company(name, answers):
    _, _, together, alone, _, _ = answers[name]
    for row, some in enumerate(alone):
        for key, value in some.items():
            mine = np.array(value[0])
            all_rows = np.array(together[key][row])[tuple(slice(size) for size in mine.shape)]
            if not mine.size:  # a row without gaps or words
                assert not all_rows.size, key
            elif mine.dtype.kind == "f":
                np.testing.assert_allclose(all_rows, mine, atol=1e-5, err_msg=key)
            else:
                np.testing.assert_array_equal(all_rows, mine, err_msg=key)


@pytest.mark.parametrize("name", EMBEDDED)
def test_embeddings_are_the_encoders(name, answers):
    model, tokenizer, _, _, _, vectors = answers[name]
    kind = kind_of(model)
    inputs = tokenizer(TEXTS, max_length=kind.settings["max_seq_length"] if kind else 32)
    encoder = model if name == "AlbertModel" else model.albert
    wanted = encoder(inputs)
    mask = inputs["input_mask"].astype(bool)
    np.testing.assert_array_equal(vectors["input_mask"], mask)
    np.testing.assert_allclose(
        np.array(vectors["sequence_output"])[mask], wanted["sequence_output"].numpy()[mask], atol=1e-5
    )
    assert ("pooled_output" in vectors) == (encoder.pooler is not None)
    if encoder.pooler is not None:
        np.testing.assert_allclose(vectors["pooled_output"], wanted["pooled_output"], atol=1e-5)
    assert vectors["is_cut"] == [len(tokenizer.encode(text)) > mask.shape[1] - 2 for text in TEXTS]


def test_texts_are_classified_as_by_the_object(answers):
    model, tokenizer, outputs, _, ids, _ = answers["AlbertForSequenceClassification"]
    wanted = albert_tf.TextClassifier(model, tokenizer, kind_of(model)).predict(TEXTS)
    assert outputs["label"] == [answer.label for answer in wanted]
    np.testing.assert_allclose(
        outputs["probabilities"], [list(answer.probabilities.values()) for answer in wanted], atol=1e-5
    )
    np.testing.assert_allclose(np.sum(outputs["probabilities"], axis=1), 1, atol=1e-6)
    assert outputs["labels"] == [list(model.head.labels)] * len(TEXTS)
    assert outputs["is_cut"] == [len(tokenizer.encode(text)) > 18 for text in TEXTS]
    assert np.shape(ids["probabilities"]) == (1, 3)


@pytest.mark.parametrize("name", ["AlbertForQuestionAnswering", "AlbertForAnswerableQuestionAnswering"])
def test_questions_are_answered_as_by_the_object(name, answers):
    model, tokenizer, outputs, _, ids, _ = answers[name]
    wanted = albert_tf.QuestionAnswerer(model, tokenizer, kind_of(model)).predict(QUESTIONS, CONTEXTS)
    for row, (context, answer) in enumerate(zip(CONTEXTS, wanted)):
        found = tuple(outputs[key][row] for key in ("answer", "start", "end", "has_answer"))
        assert found == (answer.text, answer.start, answer.end, answer.has_answer), context
        assert outputs["probability"][row] == pytest.approx(answer.probability, abs=1e-5)
        if answer.has_answer:
            assert context[found[1] : found[2]] == found[0]
        if answer.no_answer_probability is not None:
            assert outputs["no_answer_probability"][row] == pytest.approx(answer.no_answer_probability, abs=1e-5)
    assert any(answer.has_answer for answer in wanted)
    assert outputs["is_cut"] == [len(tokenizer.encode(question)) > 10 for question in QUESTIONS]
    mask = tf.constant([[0, 1, 1, 1, 1, 0, 0, 1]])
    inputs = {key: tf.constant(value) for key, value in IDS.items()}
    logits = model({**inputs, "p_mask": mask} if "Answerable" in name else inputs)
    np.testing.assert_allclose(ids["start_logits"], logits["start_logits"], rtol=1e-5, atol=1e-5)


def is_cut(tokenizer, passage: str, question: str, options: list[str]) -> bool:
    """Whether one of the sequences of 30 pieces loses some, 9 of them for question and option."""
    texts = [question.replace("_", option) if "_" in question else f"{question} {option}" for option in options]
    sizes = [len(tokenizer.encode(text)) for text in texts]
    return any(size > 9 or len(tokenizer.encode(passage)) > 27 - size for size in sizes)


def test_options_are_chosen_as_by_the_object(answers):
    model, tokenizer, outputs, _, ids, _ = answers["AlbertForMultipleChoice"]
    there = [[option for option in row if option] for row in OPTIONS]
    wanted = albert_tf.MultipleChoiceAnswerer(model, tokenizer, kind_of(model)).predict(PASSAGES, ASKED, there)
    assert outputs["label"] == [answer.label for answer in wanted]
    assert outputs["option"] == [answer.choice for answer in wanted]
    for row, answer in enumerate(wanted):
        probabilities = outputs["probabilities"][row]
        np.testing.assert_allclose(probabilities[: len(answer.probabilities)], answer.probabilities, atol=1e-5)
        assert probabilities[len(answer.probabilities) :] == [0.0] * (3 - len(answer.probabilities))
    assert outputs["is_cut"] == [is_cut(tokenizer, *row) for row in zip(PASSAGES, ASKED, there)]
    alone = model({key: tf.constant(value)[:, tf.newaxis] for key, value in IDS.items()})
    np.testing.assert_allclose(ids["logits"], alone[:, 0], atol=1e-5)


def test_words_are_tagged_as_by_the_object(answers):
    model, tokenizer, outputs, _, ids, _ = answers["AlbertForTokenClassification"]
    wanted = albert_tf.TokenTagger(model, tokenizer, kind_of(model)).predict(TEXTS)
    for row, (text, words) in enumerate(zip(TEXTS, wanted)):
        count = outputs["word_counts"][row]
        found = {key: value[row][:count] for key, value in outputs.items() if isinstance(value[row], list)}
        assert [text[start:end] for start, end in zip(found["starts"], found["ends"])] == text.split()
        assert found["labels"] == [word.tag for word in words]
        np.testing.assert_allclose(found["probabilities"], [word.probability for word in words], atol=1e-5)
        if "\ufdd0" not in text:  # TensorFlow 2.15 writes no noncharacters
            assert found["words"] == text.split()
        longest = max((len(tokenizer.encode(word)) for word in text.split()), default=0)
        assert outputs["is_cut"][row] == (longest > 14)
    assert np.shape(ids["probabilities"]) == (1, 8, 3)


@pytest.mark.parametrize("name", ["AlbertForMaskedLM", "AlbertForPreTraining"])
def test_gaps_are_filled_as_by_the_model(name, answers):
    model, tokenizer, outputs, _, ids, _ = answers[name]
    assert outputs["gaps"] == [text.count("[MASK]") for text in GAPS]
    for row, parts in enumerate((("a ", " b"), ("", ""))):
        before, behind = map(tokenizer.encode, parts)
        sequence = [tokenizer.cls_id, *before, tokenizer.mask_id, *behind, tokenizer.sep_id]
        logits = model({"input_ids": tf.constant([sequence])})
        logits = (logits["masked_lm_logits"] if isinstance(logits, dict) else logits).numpy()[0]
        at = sequence.index(tokenizer.mask_id)
        powers = np.exp(logits[at] - logits[at].max())
        probabilities = powers / powers.sum()
        probabilities[tokenizer.special_ids] = 0
        best = np.argsort(-probabilities)[:5]
        assert outputs["piece_ids"][row][0] == best.tolist() and outputs["positions"][row][0] == at
        assert outputs["pieces"][row][0] == [tokenizer.id_to_piece(i) for i in best]
        np.testing.assert_allclose(outputs["probabilities"][row][0], probabilities[best], atol=1e-5)
    assert outputs["positions"][4][0] == 1 + len(tokenizer.encode("x"))
    assert outputs["pieces"][2] == [[""] * 5] * 3 and ids["gaps"] == [1]
