"""Prints a model's parts, shapes and parameters: `python -m albert_tf.describe --config=albert_base_v1`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from absl import flags

from albert_tf import config_files, weight_names
from albert_tf.config import AlbertConfig
from albert_tf.errors import run_main

FLAGS = flags.FLAGS

# The paper's figure by (layers, hidden size, embedding size, parameter sharing): tables 1, 3, 4 and 12.
PAPER_PARAMETERS = {
    (12, 768, 128, "all"): "12M",
    (24, 1024, 128, "all"): "18M",
    (24, 2048, 128, "all"): "60M",
    (12, 4096, 128, "all"): "235M (tables 1 and 2), 233M (text), 225M (table 12)",
    (12, 768, 64, "all"): "10M",
    (12, 768, 256, "all"): "16M",
    (12, 768, 768, "all"): "31M",
    (12, 768, 768, "attention"): "83M",
    (12, 768, 768, "ffn"): "57M",
    (12, 768, 768, "none"): "108M (without the pooler)",
    (12, 768, 128, "attention"): "64M",
    (12, 768, 128, "ffn"): "38M",
    (12, 768, 64, "none"): "87M (without the pooler)",
    (12, 768, 128, "none"): "89M (without the pooler)",
    (12, 768, 256, "none"): "93M (without the pooler)",
    (24, 1024, 1024, "none"): "334M (without the pooler)",
    (3, 1024, 128, "all"): "18M",
    (3, 2048, 128, "all"): "60M",
    (3, 4096, 128, "all"): "225M",
    (3, 6144, 128, "all"): "499M",
}


def paper_figure(config: AlbertConfig) -> str:
    """The number of parameters the paper gives for a model of these sizes, or "not in the paper"."""
    key = (config.num_hidden_layers, config.hidden_size, config.embedding_size, config.parameter_sharing)
    usual_sizes = config.intermediate_size == 4 * config.hidden_size and config.vocab_size == 30000
    one_group = config.inner_group_num == 1 and (config.num_hidden_groups == 1 or config.parameter_sharing == "none")
    return PAPER_PARAMETERS.get(key, "not in the paper") if usual_sizes and one_group else "not in the paper"


def table(config: AlbertConfig) -> str:
    """One line for each variable, a shared one once, then a line for each part and the totals beside the paper's."""
    shapes = weight_names.variable_shapes(config)
    width = max(len(name) for name in shapes)
    lines = [f"{'variable (released name)':<{width}}  {'shape':>14}  {'parameters':>13}"]
    for name, shape in shapes.items():
        lines.append(f"{name:<{width}}  {str(list(shape)):>14}  {math.prod(shape):>13,}")
    lines += ["", f"{'part':<{width}}  {'used':>14}  {'parameters':>13}"]
    uses = _uses(config)
    for part, count in config.parameter_counts().items():
        if count:
            lines.append(f"{part:<{width}}  {uses.get(part, ''):>14}  {count:>13,}")
    lines += [
        "",
        f"{'embeddings, encoder and pooler':<{width}}  {'':>14}  {config.parameter_count():>13,}",
        f"{'with both pre-training heads':<{width}}  {'':>14}  {config.parameter_count(heads=True):>13,}",
        f"the paper's figure: {paper_figure(config)}",
    ]
    return "\n".join(lines)


def _uses(config: AlbertConfig) -> dict[str, str]:
    """How often the parameters of the two shareable parts are used, such as "1 for 12 layers"."""
    attention, feed_forward = (len(set(indices)) for indices in zip(*config.layer_parts()))
    layers = f"{config.num_hidden_layers} layers"
    return {"attention": f"{attention} for {layers}", "feed_forward": f"{feed_forward} for {layers}"}


def main(argv: Sequence[str]) -> int:
    path = config_files.config_path(FLAGS.config, flag="config")
    print(table(AlbertConfig.from_json_file(path)))
    if recipe := config_files.recipe_path(path):
        print(f"the recipe of its pre-training: --flagfile={recipe}")
    return 0


def define_flags() -> None:
    flags.DEFINE_string(
        "config", None, "A model configuration: a JSON file, or a name that comes with the package (albert_base_v1)."
    )
    flags.mark_flag_as_required("config")


if __name__ == "__main__":
    define_flags()
    run_main(main)
