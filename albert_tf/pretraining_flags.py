"""The flags of run_pretraining: what they are, which of them decide the result, and what is wrong with them."""

from __future__ import annotations

import math
from typing import Any

from absl import flags

from albert_tf import device_flags
from albert_tf.errors import InputError

FLAGS = flags.FLAGS

REFERENCE_BATCH, REFERENCE_RATE = 4096, 0.00176  # the released defaults (paper section 4.1)

# Flags that decide where, how often and by what means, but not what comes out; run.json leaves them out.
_WITHOUT_EFFECT_ON_THE_RESULT = frozenset(
    "albert_config_file allow_changed_settings do_eval do_train eval_batch_size eval_input_file eval_interval "
    "init_checkpoint input_file iterations_per_loop keep_accents do_lower_case keep_checkpoint_max log_steps "
    "max_eval_steps max_predictions_per_seq max_seq_length output_dir save_checkpoints_steps sentence_objective "
    "skip_bad_shards spm_model_file tensorboard tpu vocab_file".split()
)


def define_flags() -> None:
    """Defines the flags of pre-training, those of `device_flags` among them."""
    flags.DEFINE_string(
        "input_file",
        None,
        "Training shards (TFRecord) of create_pretraining_data: names and patterns with commas between. As many shards "
        "as a worker reads at once (16) or more mix best; fewer, down to one, work too.",
    )
    flags.DEFINE_string("eval_input_file", None, "Held-out shards, in the same form.")
    flags.DEFINE_string("albert_config_file", None, "The model: a JSON file, or a name such as albert_base_v2.")
    flags.DEFINE_string("output_dir", None, "Where everything goes, and where a stopped run goes on.")
    flags.DEFINE_string(
        "init_checkpoint",
        None,
        "Weights to begin with, at step 0: any checkpoint that albert_tf.convert reads, by its path, its address or "
        "the name of a public model. Without it the weights are random.",
    )
    flags.DEFINE_string("spm_model_file", None, "The SentencePiece model; by default the one the records name.")
    flags.DEFINE_string("vocab_file", None, "A WordPiece vocab.txt, in place of --spm_model_file.")
    flags.DEFINE_bool("do_lower_case", None, "Of the vocabulary kept beside the model; by default as the records say.")
    flags.DEFINE_bool("keep_accents", None, "Of the vocabulary kept beside the model; by default as the records say.")
    flags.DEFINE_integer("max_seq_length", None, "If given, the records must have this length.")
    flags.DEFINE_integer("max_predictions_per_seq", None, "If given, the records must have so many prediction slots.")
    flags.DEFINE_enum(
        "sentence_objective",
        None,
        ["sop", "nsp", "none"],
        "If given, the records must have been made for it; none trains on masked pieces alone, whatever the records.",
    )
    flags.DEFINE_bool("skip_bad_shards", False, "Read every shard at start-up and leave out damaged and empty ones.")

    flags.DEFINE_bool("do_train", True, "Train.")
    flags.DEFINE_bool("do_eval", True, "Evaluate on --eval_input_file.")
    flags.DEFINE_integer(
        "train_batch_size", 4096, "Examples of one update, over all replicas and parts.", lower_bound=1
    )
    flags.DEFINE_integer(
        "gradient_accumulation_steps",
        1,
        "Into how many parts each replica's share of a batch is cut, to save memory; the update is the same.",
        lower_bound=1,
    )
    flags.DEFINE_integer("eval_batch_size", 64, "Examples evaluated at a time, over all replicas.", lower_bound=1)
    flags.DEFINE_integer("max_eval_steps", 0, "Batches of an evaluation, at most; 0 for all records.", lower_bound=0)
    flags.DEFINE_integer("num_train_steps", 125000, "Updates.", lower_bound=1)
    flags.DEFINE_enum("optimizer", "lamb", ["lamb", "adamw"], "The optimizer.")
    flags.DEFINE_float(
        "learning_rate",
        REFERENCE_RATE,
        "The peak rate. 0.00176 belongs to batch 4096; the square-root rule gives 0.000622 for 512, 0.00044 for 256, "
        "0.000156 for 32. Small models bear more.",
        lower_bound=0.0,
    )
    flags.DEFINE_integer("num_warmup_steps", 3125, "Updates over which the rate rises from 0.", lower_bound=0)
    flags.DEFINE_float("poly_power", 1.0, "The power of the rate's decay to 0.", lower_bound=0.0)
    flags.DEFINE_enum(
        "decay_start",
        "zero",
        ["zero", "warmup_end"],
        "Where the decay counts from: step 0, as released (the rate drops at the end of the warm-up), or the end of "
        "the warm-up.",
    )
    flags.DEFINE_float("weight_decay", 0.01, "Decay of all but biases and LayerNorm.", lower_bound=0.0)
    flags.DEFINE_bool(
        "lamb_bias_correction", True, "LAMB as in its paper; --nolamb_bias_correction is the released ALBERT's."
    )
    flags.DEFINE_integer(
        "seed", 12345, "Decides initial weights, order and dropout.", lower_bound=0, upper_bound=2**31 - 1
    )
    flags.DEFINE_integer("shuffle_buffer_size", 10000, "Records shuffled among each other at a time.", lower_bound=1)

    flags.DEFINE_integer("log_steps", 100, "Updates between two lines of the log.", lower_bound=1)
    flags.DEFINE_integer("eval_interval", 1000, "Updates between two evaluations; 0 for one at the end.", lower_bound=0)
    flags.DEFINE_integer(
        "save_checkpoints_steps", 1000, "Updates between two checkpoints; 0: at the end.", lower_bound=0
    )
    flags.DEFINE_integer("keep_checkpoint_max", 5, "Checkpoints that stay; 0 for all.", lower_bound=0)
    flags.DEFINE_integer("iterations_per_loop", 10, "Updates per call from Python, at most.", lower_bound=1)
    flags.DEFINE_bool("tensorboard", True, "Write OUTPUT_DIR/tensorboard.")
    flags.DEFINE_bool("allow_changed_settings", False, "Go on with a run that was begun with other settings.")

    device_flags.define_flags(several_machines=True)
    flags.adopt_module_key_flags(device_flags)


def check_flags() -> None:
    """Refuses what can be seen to be wrong without looking at any file."""
    needed = {"albert_config_file": FLAGS.albert_config_file, "output_dir": FLAGS.output_dir}
    if FLAGS.do_train:
        needed["input_file"] = FLAGS.input_file
    else:
        needed["eval_input_file"] = FLAGS.eval_input_file
    for name, value in needed.items():
        if not value:
            raise InputError(f"--{name} is missing (--help lists the flags)")
    if not FLAGS.do_train and not FLAGS.do_eval:
        raise InputError("--nodo_train and --nodo_eval leave nothing to do")
    if FLAGS.spm_model_file and FLAGS.vocab_file:
        raise InputError("give one vocabulary: --spm_model_file or --vocab_file")
    for name in ("learning_rate", "poly_power", "weight_decay"):
        if not math.isfinite(float(FLAGS[name].value or 0.0)):  # the flags' own bounds let nan through
            raise InputError(f"--{name}={FLAGS[name].value} is not a finite number")


def all_settings() -> dict[str, Any]:
    """Every flag of pre-training and its value."""
    return {flag.name: flag.value for flag in FLAGS.get_key_flags_for_module(__name__)}


def settings_of_result() -> dict[str, Any]:
    """Those of them that decide what comes out."""
    return {name: value for name, value in all_settings().items() if name not in _WITHOUT_EFFECT_ON_THE_RESULT}
