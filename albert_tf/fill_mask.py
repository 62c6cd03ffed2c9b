"""The likeliest pieces for each gap: `python -m albert_tf.fill_mask --model=DIR --text='the [MASK] is open'`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from absl import flags

from albert_tf.errors import InputError, run_main
from albert_tf.tokenization import UNDERLINE
from albert_tf.weight_names import part_of

if TYPE_CHECKING:
    from albert_tf.models import AlbertForPreTraining
    from albert_tf.tokenizer import Tokenizer

FLAGS = flags.FLAGS
GAP = "[MASK]"


class Filling(NamedTuple):
    """A piece for a gap, as it is spelled in the vocabulary, and its probability."""

    piece: str
    probability: float


def fill_mask(
    model: AlbertForPreTraining, tokenizer: Tokenizer, texts: Sequence[str], top_k: int = 5
) -> list[list[list[Filling]]]:
    """The `top_k` likeliest pieces of every [MASK] of every text, likeliest first.

    Args:
        model: with a masked-LM head.
        tokenizer: the vocabulary the model was trained with.
        texts: each with one [MASK] or more.
        top_k: how many.

    Returns:
        For each text, for each of its gaps, the fillings. Special pieces are never among them.

    Raises:
        InputError: a text has no [MASK], or is longer than the model's positions.
    """
    import tensorflow as tf

    top_k = min(top_k, tokenizer.vocab_size - len(tokenizer.special_ids))
    results = []
    for text in texts:
        ids = encode_with_gaps(tokenizer, text)
        most = model.config.max_position_embeddings
        if len(ids) > most:
            raise InputError(f"the text {text[:40]!r}… has {len(ids)} pieces, but the model has {most} positions")
        gaps = [position for position, piece_id in enumerate(ids) if piece_id == tokenizer.mask_id]
        outputs = model({"input_ids": tf.constant([ids]), "masked_lm_positions": tf.constant([gaps])}, training=False)
        probabilities = tf.nn.softmax(outputs["masked_lm_logits"][0, :, : tokenizer.vocab_size]).numpy()
        probabilities[:, tokenizer.special_ids] = 0.0
        best = np.argsort(-probabilities, axis=1, kind="stable")[:, :top_k]
        results.append(
            [[Filling(tokenizer.id_to_piece(i), float(row[i])) for i in ids] for row, ids in zip(probabilities, best)]
        )
    return results


def encode_with_gaps(tokenizer: Tokenizer, text: str) -> list[int]:
    """[CLS] text [SEP] as ids, each [MASK] of the text as the mask piece.

    Raises:
        InputError: there is no [MASK] in the text.
    """
    first, *others = text.split(GAP)
    if not others:
        raise InputError(f"the text {text!r} has no {GAP}: put one where a piece is to be found")
    ids = [tokenizer.cls_id, *tokenizer.encode(first)]
    for part in others:
        after = tokenizer.encode(part)
        # What follows the gap without a space continues the word or is punctuation: there is no piece for a space.
        if after and not part[:1].isspace() and tokenizer.id_to_piece(after[0]) == UNDERLINE:
            after = after[1:]
        ids += [tokenizer.mask_id, *after]
    return [*ids, tokenizer.sep_id]


def main(argv: Sequence[str]) -> int:
    if FLAGS.top_k < 1:
        raise InputError(f"--top_k={FLAGS.top_k}: give 1 or more")
    for text in FLAGS.text:
        if GAP not in text:
            raise InputError(f"--text={text!r} has no {GAP}: put one where a piece is to be found")
    from albert_tf.models import AlbertForPreTraining

    model = AlbertForPreTraining.from_pretrained(FLAGS.model)
    if model.vocabulary is None:
        raise InputError(
            f"--model={FLAGS.model} has no vocabulary: python -m albert_tf.convert with --vocabulary puts one beside it"
        )
    at_random = [name for name in model.load_report.missing if part_of(name) == "masked_lm_head"]
    if at_random:
        raise InputError(
            f"--model={FLAGS.model} has no {at_random[0]}, so no masked-LM head that could fill a gap: give a "
            "pre-trained model"
        )
    tokenizer = model.vocabulary.tokenizer()
    tokenizer.check_config(model.config.vocab_size)
    for text, gaps in zip(FLAGS.text, fill_mask(model, tokenizer, FLAGS.text, FLAGS.top_k)):
        print(text)
        for fillings in gaps:
            print("  " + ", ".join(f"{filling.piece} {filling.probability:.3f}" for filling in fillings))
    return 0


def define_flags() -> None:
    flags.DEFINE_string("model", None, "A pre-trained model with its vocabulary, such as OUTPUT_DIR/model.")
    flags.DEFINE_multi_string("text", None, "A text with [MASK] in it; may be given several times.")
    flags.DEFINE_integer("top_k", 5, "How many pieces for each gap.")
    flags.mark_flags_as_required(["model", "text"])


if __name__ == "__main__":
    define_flags()
    run_main(main)
