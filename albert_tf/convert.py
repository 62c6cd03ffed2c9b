"""Reads an ALBERT in any of the known forms and writes it in another, bit for bit.

    python -m albert_tf.convert --input=albert_base_v2.tar.gz --output=albert_base_v2

Forms that are read: a TF1 checkpoint (prefix, directory, .tar.gz), a TF-Hub module, a Hugging Face directory or file, a
portable directory, a run of run_pretraining, or the name of a public model. What is written:

portable      safetensors and JSON; opens here and, where its classes can hold the model, in Hugging Face transformers
huggingface   the same for transformers alone, changed exactly where its classes cannot hold the model as it is
tf1           a checkpoint with the released names, for the code of 2019
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from absl import flags

from albert_tf import config_files, weight_names
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError, run_main

FLAGS = flags.FLAGS
FORMS = ("portable", "huggingface", "tf1")


def main(argv: Sequence[str]) -> int:
    from albert_tf import loading
    from albert_tf.formats import hugging_face, portable, tf1_writing
    from albert_tf.formats.checkpoint import Vocabulary
    from albert_tf.formats.reading import read_checkpoint
    from albert_tf.tokenization import load_tokenizer

    if len(argv) > 1:
        raise InputError(f"{argv[1]!r} is not understood: give the checkpoint as --input={argv[1]}")
    if not FLAGS.output:
        raise InputError("--output is empty: name the directory to write")
    given = None
    if FLAGS.albert_config_file:
        given = AlbertConfig.from_json_file(config_files.config_path(FLAGS.albert_config_file))
    checkpoint = read_checkpoint(FLAGS.input, given)
    config = _agreed_config(checkpoint.config, given)
    if FLAGS.max_position_embeddings is not None:
        checkpoint = loading.with_positions(checkpoint, FLAGS.max_position_embeddings)
        config = config.replace(max_position_embeddings=FLAGS.max_position_embeddings)
    if FLAGS.vocabulary:
        load_tokenizer(FLAGS.vocabulary, flag="vocabulary").check_config(config.vocab_size)
        checkpoint = checkpoint.replace(vocabulary=Vocabulary.read(FLAGS.vocabulary))
    if checkpoint.vocabulary is not None:
        cleanup = {"do_lower_case": FLAGS.do_lower_case, "keep_accents": FLAGS.keep_accents}
        said = {key: value for key, value in cleanup.items() if value is not None}
        checkpoint = checkpoint.replace(vocabulary=dataclasses.replace(checkpoint.vocabulary, **said))
    checkpoint = loading.with_fitting_vocabulary(checkpoint, config)
    shapes = weight_names.variable_shapes(config, checkpoint.head)
    weights, report = loading.match(checkpoint, shapes, config)
    print("\n".join(report.lines()))
    if report.missing:
        raise InputError(f"--input={FLAGS.input} has no {next(iter(report.missing))}, so its head is not complete")
    if checkpoint.vocabulary is None:
        print("there is no vocabulary beside the weights: text needs one, which --vocabulary adds")
    writers = {"portable": portable.write, "huggingface": hugging_face.write, "tf1": tf1_writing.write}
    for note in writers[FLAGS.to](checkpoint.replace(weights=weights, config=config), FLAGS.output):
        print(f"note: {note}")
    parameters = sum(weights[name].size for name in report.matched)
    print(f"wrote {FLAGS.output} ({FLAGS.to}): {len(report.matched)} variables, {parameters:,} parameters")
    return 0


def _agreed_config(found: AlbertConfig | None, given: AlbertConfig | None) -> AlbertConfig:
    """The input's own config, or the given one where it has none."""
    if found is None:
        raise InputError(
            f"--input={FLAGS.input}: no config is beside the weights; give one with --albert_config_file, a JSON file "
            "or a name such as albert_base_v2"
        )
    if given is not None and given != found:
        ours, theirs = found.to_dict(), given.to_dict()
        key = next(key for key in sorted({*ours, *theirs}) if ours.get(key) != theirs.get(key))
        raise InputError(
            f"--albert_config_file={FLAGS.albert_config_file} has {key} {theirs.get(key)!r}, but the config that comes "
            f"with --input={FLAGS.input} has {ours.get(key)!r}: leave the flag out, or correct the config beside the "
            "weights"
        )
    return found


def define_flags() -> None:
    flags.DEFINE_string("input", None, "The checkpoint: a path of any of the forms above, or a public model's name.")
    flags.DEFINE_string("output", None, "The directory to write.")
    flags.DEFINE_enum("to", "portable", FORMS, "The form to write.")
    flags.DEFINE_string(
        "albert_config_file",
        None,
        "The sizes, for an input that does not tell them: a JSON file, or a name that comes with the package.",
    )
    flags.DEFINE_string("vocabulary", None, "A vocabulary to put in, for an input without one: .model or vocab.txt.")
    flags.DEFINE_boolean(
        "do_lower_case", None, "Whether text is lower-cased before the vocabulary; by default as it is told beside it."
    )
    flags.DEFINE_boolean("keep_accents", None, "Whether accents are kept; by default as it is told beside it.")
    flags.DEFINE_integer(
        "max_position_embeddings",
        None,
        "Cut the table of positions to that many, or extend it by its own rows from the first one on.",
    )
    flags.mark_flags_as_required(["input", "output"])


if __name__ == "__main__":
    define_flags()
    run_main(main)
