"""The flag files of configs/recipes: every flag in them exists, and they say what the paper and the release say."""

from __future__ import annotations

import pathlib
import types
from typing import Any

import pytest

from albert_tf import config_files, pretraining_flags
from albert_tf.config import AlbertConfig
from data_prep import create_pretraining_data, train_sentencepiece
from tests.own_flags import parsed

RECIPES = pathlib.Path(__file__).resolve().parent.parent / "configs" / "recipes"
SIZES = [f"albert_{size}_{version}" for size in ("base", "large", "xlarge", "xxlarge") for version in ("v1", "v2")]


def of_recipe(script: types.ModuleType, recipe: str) -> dict[str, Any]:
    """The flags of a script as a recipe sets them."""
    return parsed(script, f"--flagfile={RECIPES / recipe}").flag_values_dict()


def test_there_is_one_for_each_released_size():
    assert sorted(path.stem for path in RECIPES.glob("albert_*.flags")) == sorted(SIZES)


@pytest.mark.parametrize("size", SIZES)
def test_pretraining_recipe(size):
    values = of_recipe(pretraining_flags, f"{size}.flags")
    expected = {
        "albert_config_file": size,
        "optimizer": "lamb",
        "learning_rate": 0.00176,
        "train_batch_size": 4096,
        "num_warmup_steps": 3125,
        "max_seq_length": 512,
        "max_predictions_per_seq": 20,
        "num_train_steps": {"v1": 125_000, "v2": 3_000_000}[size[-2:]] if size != "albert_base_v2" else 10_000_000,
    }
    assert {name: values[name] for name in expected} == expected
    config = AlbertConfig.from_json_file(config_files.config_path(size))
    assert config.hidden_dropout_prob == (0.1 if size.endswith("v1") and "xxlarge" not in size else 0.0)


def test_vocabulary_and_records():
    values = of_recipe(train_sentencepiece, "vocabulary.flags")
    assert (values["vocab_size"], values["character_coverage"]) == (30_000, 0.99995)
    assert values["input_sentence_size"] == 10_000_000
    values = of_recipe(create_pretraining_data, "records.flags")
    assert (values["max_seq_length"], values["max_predictions_per_seq"], values["dupe_factor"]) == (512, 20, 40)
    assert (values["ngram"], values["masked_lm_prob"], values["short_seq_prob"]) == (3, 0.15, 0.1)
