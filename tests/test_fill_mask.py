"""albert_tf.fill_mask: gaps become the mask piece, and the likeliest pieces come back in order."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.gap_filling import GapFiller, encode_with_gaps
from albert_tf.models import AlbertForPreTraining, AlbertModel
from albert_tf.tokenization import load_tokenizer
from tests.script_driver import Driver

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "door", "is", "open", "shut", ".", "red"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    path.write_text("\n".join(WORDS) + "\n")
    return load_tokenizer(path)


@pytest.fixture(scope="module")
def model():
    tf.keras.utils.set_random_seed(1)
    config = AlbertConfig(
        vocab_size=len(WORDS) + 2,  # a table larger than the vocabulary: the rows beyond are never an answer
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        embedding_size=8,
        max_position_embeddings=10,
        initializer_range=0.5,
    )
    return AlbertForPreTraining(config)


@pytest.fixture(scope="module")
def driver():
    driver = Driver("albert_tf.fill_mask")
    yield driver
    driver.close()


def test_gaps_become_the_mask_piece(tokenizer):
    assert encode_with_gaps(tokenizer, "the [MASK] is [MASK].") == [2, 5, 4, 7, 4, 10, 3]
    assert encode_with_gaps(tokenizer, "[MASK]") == [2, 4, 3]


def test_punctuation_behind_a_gap_has_no_space_before_it(shared):
    tokenizer = load_tokenizer(shared / "data/albert_en/30k-clean.model")
    pieces = [tokenizer.id_to_piece(i) for i in encode_with_gaps(tokenizer, "the [MASK]. and [MASK] door")]
    assert pieces == ["[CLS]", "▁the", "[MASK]", ".", "▁and", "[MASK]", "▁door", "[SEP]"]


def test_fillings_are_the_largest_of_the_softmax(tokenizer, model):
    text = "the [MASK] is [MASK]"
    gaps = GapFiller(model, tokenizer, top_k=3)([text])[0]
    outputs = model({"input_ids": tf.constant([[2, 5, 4, 7, 4, 3]])}, training=False)
    logits = outputs["masked_lm_logits"].numpy()[0, [2, 4], : len(WORDS)].astype(np.float64)
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert len(gaps) == 2
    for fillings, row in zip(gaps, expected):
        order = [i for i in np.argsort(-row) if i > 4][:3]
        assert [filling.piece for filling in fillings] == [WORDS[i] for i in order]
        np.testing.assert_allclose([filling.probability for filling in fillings], row[order], rtol=1e-4)


def test_more_than_there_are_pieces_gives_all_of_them(tokenizer, model):
    (fillings,) = GapFiller(model, tokenizer, top_k=100)(["the [MASK]"])[0]
    assert sorted(filling.piece for filling in fillings) == sorted(WORDS[5:])


@pytest.mark.parametrize(
    ("text", "message"), [("the door", "has no \\[MASK\\]"), ("[MASK]" + " the" * 9, "12 pieces.*10")]
)
def test_texts_that_cannot_be_filled(tokenizer, model, text, message):
    with pytest.raises(InputError, match=message):
        GapFiller(model, tokenizer)([text])


def test_the_command_reads_a_portable_directory(tokenizer, model, driver, tmp_path):
    model.save_pretrained(tmp_path / "model", tokenizer)
    text = driver.run("--text=the [MASK] is open", "--text=[MASK]", model=tmp_path / "model", top_k=2)
    first, fillings, second, _ = text.splitlines()[-4:]
    assert (first, second) == ("the [MASK] is open", "[MASK]")
    expected = GapFiller(model, tokenizer, top_k=2)(["the [MASK] is open"])[0][0]
    assert fillings.split(", ")[0].split() == [expected[0].piece, f"{expected[0].probability:.3f}"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"text": "[MASK]"}, "--model"),
        ({"model": "nowhere", "text": "[MASK]"}, "nowhere"),
        ({"model": ".", "text": "no gap"}, "no gap"),
        ({"model": ".", "text": "[MASK]", "top_k": 0}, "--top_k=0"),
        ({"model": "tests", "text": "[MASK]"}, "holds no weights"),
    ],
)
def test_wrong_arguments_are_told_in_one_sentence(driver, flags, message):
    told = driver.run(expect=1, **flags)
    assert message in told and "Traceback" not in told


@pytest.mark.parametrize(("lacks", "message"), [("head", "no masked-LM head"), ("vocabulary", "has no vocabulary")])
def test_a_model_that_cannot_fill_gaps_is_refused(tokenizer, model, driver, tmp_path, lacks, message):
    if lacks == "head":
        AlbertModel(model.config).save_pretrained(tmp_path / "model", tokenizer)
    else:
        model.save_pretrained(tmp_path / "model")
    told = driver.run(expect=1, model=tmp_path / "model", text="[MASK]")
    assert message in told and "Traceback" not in told
