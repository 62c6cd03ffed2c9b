"""The likeliest pieces for each gap: `python -m albert_tf.fill_mask --model=DIR --text='the [MASK] is open'`.

Many texts, from a file: `albert_tf.predict`.
"""

from __future__ import annotations

from collections.abc import Sequence

from absl import flags

from albert_tf.errors import InputError, run_main

FLAGS = flags.FLAGS


def main(argv: Sequence[str]) -> int:
    if FLAGS.top_k < 1:
        raise InputError(f"--top_k={FLAGS.top_k}: give 1 or more")
    from albert_tf import gap_filling

    for text in FLAGS.text:
        if gap_filling.GAP not in text:
            raise InputError(f"--text={text!r} has no {gap_filling.GAP}: put one where a piece is to be found")
    fill = gap_filling.GapFiller(*gap_filling.load(FLAGS.model), top_k=FLAGS.top_k)
    for text, gaps in zip(FLAGS.text, fill(FLAGS.text)):
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
