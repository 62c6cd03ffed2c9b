"""albert_tf.job_flags: what flags and recipe come to, without a training."""

from __future__ import annotations

import numpy as np
import pytest

from albert_tf import finetuning_flags, job_flags, task_flags
from albert_tf.feature_set import FeatureSet
from albert_tf.finetuning_data import Split
from albert_tf.finetuning_run import Data
from albert_tf.tasks import recipes
from albert_tf.tasks.examples import QuestionExample
from tests import own_flags


def use_flags(monkeypatch, **given):
    """Lets the modules of fine-tuning's flags read these."""
    values = own_flags.parsed(finetuning_flags, **given)
    own_flags.use(monkeypatch, finetuning_flags, task_flags, job_flags, values=values)


@pytest.mark.parametrize("task", ["cmrc2018", "squad1.1", "squad2.0"])
def test_the_recipes_epochs_are_those_of_the_flag(monkeypatch, task):
    recipe, windows, batch = recipes.find_recipe(task), 19_200, 48
    sizes = np.full(windows, 4, np.int32)
    features = FeatureSet(np.zeros(4 * windows, np.int32), sizes, sizes, np.arange(windows, dtype=np.int32) // 8)
    examples = [QuestionExample(str(number), "q", "c") for number in range(windows // 8)]
    training = Data(Split("train", "train.json", examples, len(examples)), features)
    use_flags(monkeypatch)
    of_recipe = job_flags.find_settings(recipe, training, batch, 1e-5, {})
    use_flags(monkeypatch, num_train_epochs=recipe.num_train_epochs)
    assert of_recipe == job_flags.find_settings(recipe, training, batch, 1e-5, {})
    assert of_recipe.num_train_steps == round(recipe.num_train_epochs * windows / batch)
