"""The recipes: Table 14 as printed, the README's corrections, sizes that do not collapse, and slices of files."""

from __future__ import annotations

import dataclasses

import pytest

from albert_tf.config import AlbertConfig
from albert_tf.config_files import config_names, config_path
from albert_tf.errors import InputError
from albert_tf.tasks import recipes
from albert_tf.tasks.catalogue import TASKS

# Copied from the paper: rate, batch, encoder dropout, classifier dropout, steps, warm-up, length.
TABLE_14 = """
CoLA     1e-5 16  0   0.1 5336  320  512
STS-B    2e-5 16  0   0.1 3598  214  512
SST-2    1e-5 32  0   0.1 20935 1256 512
MNLI     3e-5 128 0   0.1 10000 1000 512
QNLI     1e-5 32  0   0.1 33112 1986 512
QQP      5e-5 128 0.1 0.1 14000 1000 512
RTE      3e-5 32  0.1 0.1 800   200  512
MRPC     2e-5 32  0   0.1 800   200  512
WNLI     2e-5 16  0.1 0.1 2000  250  512
SQuAD1.1 5e-5 48  0   0.1 3649  365  384
SQuAD2.0 3e-5 48  0   0.1 8144  814  512
RACE     2e-5 32  0.1 0.1 12000 1000 512
"""
ROWS = [line.split() for line in TABLE_14.strip().split("\n")]
# The rows of the official training files, as their papers and the GLUE paper's Table 1 count them.
OFFICIAL = {"CoLA": 8551, "STS-B": 5749, "SST-2": 67349, "RTE": 2490, "MRPC": 3668, "WNLI": 635, "SQuAD1.1": 87599}
OFFICIAL.update({"SQuAD2.0": 130319, "RACE": 87866, "MNLI": 392702, "QNLI": 104743, "QQP": 363846})


def config(name):
    return AlbertConfig.from_json_file(config_path(name))


def fields(recipe):
    kept = dataclasses.asdict(recipe)
    return {name: kept[name] for name in ("learning_rate", "train_batch_size", "encoder_dropout", "warmup_proportion")}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_table_14_comes_out_as_printed(row):
    name, *values = row
    rate, batch, encoder, classifier, steps, warmup, length = map(float, values)
    recipe = recipes.paper_recipe(name.lower())
    assert (recipe.learning_rate, recipe.train_batch_size) == (rate, batch)
    assert (recipe.encoder_dropout, recipe.classifier_dropout) == (encoder, classifier)
    assert recipe.max_seq_length == length
    assert recipe.steps_for(OFFICIAL[name], OFFICIAL[name]) == (steps, warmup)
    assert recipe.steps_for(OFFICIAL[name], 2 * OFFICIAL[name]) == (steps, warmup)  # SQuAD's windows are not counted
    assert recipes.find_recipe(name.lower()) == recipe
    assert set(recipe.sources.values()) <= {recipes.TABLE_14, "default of the released script"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_slice_is_passed_as_often_as_the_whole_file(row):
    recipe = recipes.paper_recipe(row[0].lower())
    epochs = int(row[5]) * int(row[2]) / OFFICIAL[row[0]]
    for rows in (200, 2000):
        steps, warmup = recipe.steps_for(rows, rows)
        assert abs(steps - epochs * rows / recipe.train_batch_size) <= 0.5
        assert warmup == pytest.approx(steps * int(row[6]) / int(row[5]), abs=0.5000001)
        assert recipe.steps_for(rows // 4, rows) == (steps, warmup)
    assert recipe.steps_for(1, 1).num_train_steps >= 1
    half = recipe.steps_for(2000, 2000, recipe.train_batch_size // 2)
    assert abs(half.num_train_steps - 2 * recipe.steps_for(2000, 2000).num_train_steps) <= 1


def test_every_task_has_a_recipe_and_every_recipe_a_task():
    assert set(recipes.PAPER) | set(recipes.OTHERS) == set(TASKS) | {"choice_file"}
    with pytest.raises(InputError, match="there is no recipe for 'xnli': there are those for cola"):
        recipes.find_recipe("xnli")
    with pytest.raises(InputError, match="the paper has no recipe for 'dream'"):
        recipes.paper_recipe("dream")


def test_race_of_models_without_dropout_is_the_readmes():
    paper, second = (
        recipes.find_recipe("race", config("albert_base_v1")),
        recipes.find_recipe("race", config("albert_base_v2")),
    )
    assert (paper.learning_rate, paper.encoder_dropout) == (2e-5, 0.1)
    assert (second.learning_rate, second.encoder_dropout) == (1e-5, 0.0)
    assert second.sources["learning_rate"] == second.sources["encoder_dropout"] == recipes.README
    assert second.sources["train_batch_size"] == recipes.TABLE_14


@pytest.mark.parametrize("task", [*recipes.PAPER, *recipes.OTHERS])
@pytest.mark.parametrize("size", ["large", "xlarge", "xxlarge"])
def test_large_models_without_dropout_get_the_settings_that_do_not_collapse(task, size):
    recipe = recipes.find_recipe(task, config(f"albert_{size}_v2"))
    assert recipe.learning_rate <= 1e-5
    assert recipe.warmup_proportion >= 0.1
    assert recipe.encoder_dropout == 0


@pytest.mark.parametrize("task", ["mnli", "qqp", "rte"])
def test_base_and_large_with_dropout_keep_the_table(task):
    for name in ("albert_base_v1", "albert_base_v2", "albert_large_v1"):
        assert fields(recipes.find_recipe(task, config(name))) == fields(recipes.paper_recipe(task))


def test_small_models_get_larger_rates():
    tiny = config("albert_tiny")
    assert recipes.find_recipe("sst-2", tiny).learning_rate == 3e-4
    toy = dataclasses.replace(tiny, hidden_size=64)
    assert recipes.find_recipe("sst-2", toy).learning_rate == 6e-4
    assert recipes.find_recipe("sst-2", toy).sources["learning_rate"] == recipes.TOY
    middle = dataclasses.replace(tiny, hidden_size=512, num_attention_heads=8, intermediate_size=2048)
    assert recipes.find_recipe("sst-2", middle).learning_rate == 1e-4
    assert recipes.find_recipe("sst-2", middle).sources["learning_rate"] == recipes.SMALL


def test_sequences_are_no_longer_than_the_models_positions():
    short = dataclasses.replace(config("albert_tiny"), max_position_embeddings=128)
    recipe = recipes.find_recipe("squad1.1", short)
    assert (recipe.max_seq_length, recipe.sources["max_seq_length"]) == (128, recipes.LIMIT)


@pytest.mark.parametrize("name", config_names())
def test_of_every_size_it_is_known_where_rate_batch_and_warm_up_come_from(name):
    for task in TASKS:
        recipe = recipes.find_recipe(task, config(name))
        for field in ("learning_rate", "train_batch_size", "warmup_proportion", "encoder_dropout", "max_seq_length"):
            assert recipe.sources[field]


def test_small_files_of_a_persons_own_are_passed_more_often():
    recipe = recipes.find_recipe("text_file")
    assert recipe.steps_for(32_000, 32_000).num_train_steps == 3000
    assert recipe.steps_for(3200, 3200).num_train_steps == 500
    assert recipe.steps_for(100, 100).num_train_steps == round(50 * 100 / 32)
    assert recipe.steps_for(3200, 3200).num_warmup_steps == 50


@pytest.mark.parametrize("task", ["cmrc2018", "jsquad", "conll"])
def test_an_epoch_passes_every_window(task):
    recipe = recipes.find_recipe(task)
    steps = recipe.steps_for(10_000, 32_000).num_train_steps
    assert steps == recipe.num_train_epochs * 32_000 / recipe.train_batch_size


def test_the_dropout_goes_into_the_models_configuration():
    changed = recipes.paper_recipe("rte").config(config("albert_base_v2"))
    assert changed.hidden_dropout_prob == changed.attention_probs_dropout_prob == 0.1
    changed = recipes.paper_recipe("cola").config(config("albert_base_v1"))
    assert (changed.hidden_dropout_prob, changed.attention_probs_dropout_prob, changed.classifier_dropout_prob) == (
        0,
        0,
        0.1,
    )


def test_squad_and_race_have_the_released_scripts_lengths():
    squad, race = recipes.paper_recipe("squad2.0"), recipes.paper_recipe("race")
    assert (squad.doc_stride, squad.max_query_length, squad.max_answer_length, squad.n_best_size) == (128, 64, 30, 20)
    assert (race.max_qa_length, race.doc_stride) == (128, None)
