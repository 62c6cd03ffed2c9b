"""A model for a server: `python -m albert_tf.export --model=DIR --format=saved_model --output=BASE`.

Writes `BASE/1`, the next time `BASE/2` and so on, as TF Serving looks for versions; `exporting.saved_model` says what
is inside, and `export_saved_model` writes one from Python.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from albert_tf import storage
from albert_tf.errors import InputError, run_main
from albert_tf.model_name import check_name
from albert_tf.task_file import PAIRS

if TYPE_CHECKING:
    from albert_tf.exporting.runtimes.runtime_export import Labelled
    from albert_tf.exporting.saved_model import export_saved_model
    from albert_tf.exporting.source import Source

__all__ = ["export_saved_model"]

FLAGS = flags.FLAGS
SAVED_MODEL = "saved_model"
_OF_SAVED_MODELS = ("name", "ids_only", "mixed_precision", "top_k")
_OF_RUNTIMES = ("weights", "packed")
_OF_TEXTS = ("pairs", "top_k")


def __getattr__(name: str) -> Any:
    if name in __all__:  # TensorFlow is imported when it is asked for
        from albert_tf.exporting import saved_model

        return getattr(saved_model, name)
    raise AttributeError(f"module 'albert_tf.export' has no attribute {name!r}")


def main(argv: Sequence[str]) -> int:
    if not check_name(FLAGS.name):
        raise InputError(f"--name={FLAGS.name} cannot be in an address: give letters, digits, '.', '_' and '-' alone")
    _refuse(_OF_RUNTIMES if FLAGS.format == SAVED_MODEL else _OF_SAVED_MODELS, f"for --format={FLAGS.format}")
    if FLAGS.ids_only:
        _refuse(_OF_TEXTS, "with --ids_only")
    FORMATS[FLAGS.format]()
    return 0


def _refuse(names: Sequence[str], where: str) -> None:
    """Raises InputError if one of these flags is given, for it does nothing there."""
    for name in names:
        if FLAGS[name].value != FLAGS[name].default:
            raise InputError(f"--{name} does nothing {where}: leave it out")


def write_saved_model() -> None:
    """Writes the next version of a SavedModel with all that TF Serving wants beside it, and says what that is.

    The graph that the signatures ask is compared with the model before the version appears.
    """
    from albert_tf import gap_filling
    from albert_tf.exporting import saved_model, serving_files, source, version_directories, warmup
    from albert_tf.exporting.runtimes import ids_outputs, runtime_export

    loaded = source.load(FLAGS.model, head=FLAGS.head, **_settings())
    head = loaded.model.head.kind
    if head not in gap_filling.HEADS:
        _refuse(["top_k"], f"for --model={FLAGS.model} with the head {head}")
    tokenizer = None if FLAGS.ids_only else loaded.tokenizer
    if tokenizer is None and not FLAGS.ids_only:
        raise InputError(
            f"--model={FLAGS.model} has no vocabulary: albert_tf.convert with --vocabulary puts one beside it, and "
            "--ids_only exports without one"
        )
    parts = saved_model.make_parts(
        loaded.model,
        tokenizer,
        kind=loaded.kind,
        max_seq_length=FLAGS.max_seq_length,
        pairs=tokenizer is not None and _takes_pairs(loaded),
        top_k=FLAGS.top_k,
    )
    labelled = _labelled(loaded)
    version = FLAGS.version or version_directories.next_version(FLAGS.output)
    path = storage.join(FLAGS.output, str(version))
    with version_directories.new_version(FLAGS.output, version) as directory:
        graph = saved_model.save(directory, parts, FLAGS.mixed_precision)
        result = runtime_export.compare(
            os.path.join(directory, serving_files.EXTRA),
            ids_outputs.as_arrays(ids_outputs.keras_function(graph, with_vectors=True)),
            parts,
            FLAGS.mixed_precision,
            called=path,
            with_vectors=True,
            texts=FLAGS.check_texts,
            labelled=labelled,
        )
        ops = serving_files.write_extra(directory)
        has_warmup = warmup.write(directory, FLAGS.name, version, saved_model.samples(parts))
    serving_files.write_samples(FLAGS.output, FLAGS.name)
    print(f"wrote {path}")
    for line in runtime_export.lines(result):
        print(line)
    for name, operations in ops.items():
        print(f"{name}: {', '.join(operations) or 'none'}")
    if not has_warmup:
        print("there is no warm-up in it: tensorflow-serving-api, which has its form, is not installed")


def _takes_pairs(loaded: Source) -> bool:
    """Whether texts come in pairs: by flag, or as the model was fine-tuned.

    Raises:
        InputError: it is a classifier, and nothing tells.
    """
    pairs = loaded.about.get(PAIRS) if FLAGS.pairs is None else FLAGS.pairs
    if pairs is None and loaded.model.head.kind == "classifier":
        raise InputError(
            f"nothing tells whether --model={FLAGS.model} takes single texts or pairs: give --nopairs or --pairs"
        )
    return bool(pairs)


def _labelled(loaded: Source) -> Labelled | None:
    """What --check_file has, read before anything is written."""
    from albert_tf.exporting.runtimes import runtime_export

    if FLAGS.ids_only and (FLAGS.check_texts or FLAGS.check_file):
        raise InputError("--check_texts and --check_file need the vocabulary, and --ids_only leaves it out")
    return runtime_export.read_labelled(FLAGS.check_file, loaded) if FLAGS.check_file else None


def write_runtime_file() -> None:
    """Writes the next version of a model for another runtime, once it is compared with the model, and says how far."""
    from albert_tf.exporting import saved_model, source, version_directories
    from albert_tf.exporting.runtimes import runtime_export

    runtime_export.check_format(FLAGS.format, FLAGS.weights, FLAGS.packed)
    loaded = source.load(FLAGS.model, head=FLAGS.head, **_settings())
    head = loaded.model.head.kind
    if head != "classifier":
        _refuse(["pairs"], f"for --format={FLAGS.format} and --model={FLAGS.model} with the head {head}")
    if FLAGS.packed:
        runtime_export.check_packs(loaded.model)
    if loaded.tokenizer is None:
        raise InputError(f"--model={FLAGS.model} has no vocabulary: albert_tf.convert with --vocabulary puts one there")
    pairs = bool(loaded.about.get(PAIRS) if FLAGS.pairs is None else FLAGS.pairs)
    length = FLAGS.max_seq_length
    parts = saved_model.make_parts(loaded.model, loaded.tokenizer, kind=loaded.kind, max_seq_length=length, pairs=pairs)
    labelled = _labelled(loaded)
    version = FLAGS.version or version_directories.next_version(FLAGS.output)
    path = storage.join(FLAGS.output, str(version))
    with version_directories.new_version(FLAGS.output, version) as directory:
        packed = FLAGS.packed
        function = runtime_export.write(directory, FLAGS.format, loaded, parts, FLAGS.weights, packed=packed)
        result = runtime_export.compare(
            directory,
            function,
            parts,
            FLAGS.weights,
            called=path,
            packed=packed,
            texts=FLAGS.check_texts,
            labelled=labelled,
        )
    print(f"wrote {path}")
    for line in runtime_export.lines(result):
        print(line)


def _settings() -> dict[str, Any]:
    """The settings of the kind of task that were given."""
    given = {"max_seq_length": FLAGS.max_seq_length, "doc_stride": FLAGS.doc_stride}
    return {name: value for name, value in given.items() if value is not None}


FORMATS: Mapping[str, Callable[[], None]] = {
    SAVED_MODEL: write_saved_model,
    **dict.fromkeys(("onnx", "openvino", "tflite"), write_runtime_file),
}


def define_flags() -> None:
    flags.DEFINE_string("model", None, "Any model that albert_tf.convert reads, or an output directory.")
    flags.DEFINE_string("output", None, "The directory of the versions.")
    flags.DEFINE_enum("format", SAVED_MODEL, sorted(FORMATS), "What to write.")
    flags.DEFINE_enum("head", "auto", ["auto", "encoder"], "encoder: vectors alone, whatever head the model has.")
    flags.DEFINE_integer("version", None, "The version's number; by default one more than the last.", lower_bound=1)
    flags.DEFINE_string("name", "albert", "What the server calls the model.")
    flags.DEFINE_bool("ids_only", False, "Leave out the signatures with texts: plain TensorFlow loads the rest.")
    flags.DEFINE_bool(
        "pairs",
        None,
        "Texts come in pairs, for classifiers, encoders and `embeddings`; by default as the model was fine-tuned.",
    )
    flags.DEFINE_integer(
        "max_seq_length", None, "The most pieces of a sequence; by default the model's.", lower_bound=5
    )
    flags.DEFINE_integer("doc_stride", None, "Pieces from one window of a long text to the next.", lower_bound=1)
    flags.DEFINE_enum(
        "mixed_precision",
        "float32",
        ["float32", "bfloat16", "float16"],
        "Of the encoder's products. bfloat16 is faster where the CPU multiplies it (AVX512-BF16, AMX).",
    )
    flags.DEFINE_integer("top_k", 5, "How many pieces for each [MASK].", lower_bound=1)
    flags.DEFINE_enum("weights", "float32", ["float32", "float16", "int8"], "How other runtimes keep large matrices.")
    flags.DEFINE_bool(
        "packed",
        False,
        "onnx and openvino: rows hold several texts, for bulk scoring. Classifiers, regressors, multiple choice and "
        "the encoder's pooled_output alone: taggers, spans and the masked LM read every position.",
    )
    flags.DEFINE_string("check_texts", None, "Texts, one a line, to compare the export with the model on.")
    flags.DEFINE_string("check_file", None, "A labelled file of the model's task, to compare the scores on.")
    flags.mark_flags_as_required(["model", "output"])


if __name__ == "__main__":
    define_flags()
    run_main(main)
