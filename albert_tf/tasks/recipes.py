"""With which rate, batch, dropout, steps and lengths a task is fine-tuned, and who says so.

The paper's Table 14 stands here number by number (`PAPER`). `find_recipe` starts from it, follows the released README
where that corrects it, and changes the rate for sizes that the table does not fit; `Recipe.sources` names the origin of
each value.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.tasks import released_settings

TABLE_14 = "paper, Table 14"
README = "released README, for models trained without dropout"
OURS = "default of albert_tf"
LARGE = "as the README's for RACE: users report that large models trained without dropout else stay at chance"
SMALL = "for small models, from the grid (3e-5 to 3e-4) published with BERT's small models: the table's rate is too low"
TOY = "for models of toy size, measured: smaller rates teach them less, and with 1e-3 two of five stay at chance"
LIMIT = "the model's longest sequence"


class Row(NamedTuple):
    """A row of Table 14 and the rows of the official training file, which turn steps into epochs.

    `encoder_dropout` is the table's "ALBERT DR"; SQuAD counts questions, RACE questions too.
    """

    learning_rate: float
    train_batch_size: int
    encoder_dropout: float
    classifier_dropout: float
    num_train_steps: int
    num_warmup_steps: int
    max_seq_length: int
    official_rows: int


PAPER = {
    "cola": Row(1e-5, 16, 0.0, 0.1, 5336, 320, 512, 8551),
    "sts-b": Row(2e-5, 16, 0.0, 0.1, 3598, 214, 512, 5749),
    "sst-2": Row(1e-5, 32, 0.0, 0.1, 20935, 1256, 512, 67349),
    "mnli": Row(3e-5, 128, 0.0, 0.1, 10000, 1000, 512, 392702),
    "qnli": Row(1e-5, 32, 0.0, 0.1, 33112, 1986, 512, 104743),
    "qqp": Row(5e-5, 128, 0.1, 0.1, 14000, 1000, 512, 363846),
    "rte": Row(3e-5, 32, 0.1, 0.1, 800, 200, 512, 2490),
    "mrpc": Row(2e-5, 32, 0.0, 0.1, 800, 200, 512, 3668),
    "wnli": Row(2e-5, 16, 0.1, 0.1, 2000, 250, 512, 635),
    "squad1.1": Row(5e-5, 48, 0.0, 0.1, 3649, 365, 384, 87599),
    "squad2.0": Row(3e-5, 48, 0.0, 0.1, 8144, 814, 512, 130319),
    "race": Row(2e-5, 32, 0.1, 0.1, 12000, 1000, 512, 87866),
}
NOTES = {
    "squad1.1": "the README's command says the same: 5e-5, batch 48, 2 epochs, length 384",
    "squad2.0": "the README's command has 5e-5, 2 epochs and length 384 in place of the table's",
    "race": "the README's command has 1e-5; with 2e-5 and dropout 0.1 models trained without dropout diverge",
    "rte": "the paper starts from a model fine-tuned on MNLI",
    "mrpc": "the paper starts from a model fine-tuned on MNLI",
    "sts-b": "the paper starts from a model fine-tuned on MNLI",
}
_SETTINGS_OF_SQUAD = {
    "doc_stride": released_settings.DOC_STRIDE,
    "max_query_length": released_settings.MAX_QUERY_LENGTH,
    "max_answer_length": released_settings.MAX_ANSWER_LENGTH,
    "n_best_size": released_settings.N_BEST_SIZE,
}
_SETTINGS_OF_RACE = {"max_qa_length": released_settings.MAX_QA_LENGTH}
_SETTINGS = {"squad1.1": _SETTINGS_OF_SQUAD, "squad2.0": _SETTINGS_OF_SQUAD, "race": _SETTINGS_OF_RACE}

LARGE_HIDDEN_SIZE, LARGE_RATE, LARGE_WARMUP = 1024, 1e-5, 0.1
# Up to this hidden size, at least this rate, and who says so. Measured with models begun at random that were told, on
# 200 short rows, to separate two words. albert_tiny (128) stays at chance with 1e-5 in three runs of three, is right in
# all with 1e-4 and 3e-4, and at chance in one of three with 1e-3. With hidden size 64 and two layers, the mean accuracy
# of five runs on 400 other rows is 0.88 with 3e-4, 0.95 with 6e-4, and 0.78 with 1e-3, where two stay at chance.
SMALL_RATES = ((64, 6e-4, TOY), (256, 3e-4, SMALL), (512, 1e-4, SMALL))


class Steps(NamedTuple):
    """How long a training is, in optimizer updates."""

    num_train_steps: int
    num_warmup_steps: int


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a task is fine-tuned.

    Attributes:
        learning_rate: the highest, at the end of the warm-up; it then falls to 0 in a straight line.
        train_batch_size: B.
        encoder_dropout: for the hidden states and the attention probabilities.
        classifier_dropout: for what the head reads.
        num_train_epochs: passes over the training file, see `steps_for`.
        warmup_proportion: the share of the steps in which the rate rises.
        max_seq_length: pieces of a sequence.
        doc_stride, max_query_length, max_answer_length, n_best_size, max_qa_length: settings of some kinds of task;
            None leaves the kind its own default. A kind lowers those that do not fit into `max_seq_length`.
        least_steps: small files are passed more often until that many steps are done, but not more than `most_epochs`
            times: with a handful of steps nothing is learned.
        most_epochs: see `least_steps`.
        official_examples: of a recipe of Table 14, how many examples the official training file has; None of others.
        sources: field to who says so.
        notes: what else a person should know.
    """

    learning_rate: float
    train_batch_size: int
    encoder_dropout: float
    classifier_dropout: float
    num_train_epochs: float
    warmup_proportion: float
    max_seq_length: int
    doc_stride: int | None = None
    max_query_length: int | None = None
    max_answer_length: int | None = None
    n_best_size: int | None = None
    max_qa_length: int | None = None
    least_steps: int = 0
    most_epochs: float = 50.0  # WNLI's in Table 14
    official_examples: int | None = None
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def steps_for(self, examples: int, rows: int, train_batch_size: int | None = None) -> Steps:
        """The steps for a training file: the epochs and the share of warm-up stay.

        An epoch passes every row of a batch once, as `--num_train_epochs` counts: where contexts or sentences are cut
        into windows, each window is a row. For as many examples as the official file has, the steps are those of Table
        14 themselves, whatever the number of windows, since the paper counts SQuAD's questions.

        Args:
            examples: to train on; of SQuAD the questions.
            rows: that they become.
            train_batch_size: B, if not the recipe's.
        """
        passed = examples if examples == self.official_examples else rows
        of_epoch = passed / (train_batch_size or self.train_batch_size)
        steps = max(self.num_train_epochs * of_epoch, min(self.least_steps, self.most_epochs * of_epoch))
        whole = max(1, round(steps))
        return Steps(whole, round(self.warmup_proportion * whole))

    @property
    def official_steps(self) -> int | None:
        """Those of Table 14, which hold for the official training file; None of other recipes."""
        if self.official_examples is None:
            return None
        return self.steps_for(self.official_examples, self.official_examples).num_train_steps

    def config(self, config: AlbertConfig) -> AlbertConfig:
        """The model's configuration with the recipe's dropout."""
        return dataclasses.replace(
            config,
            hidden_dropout_prob=self.encoder_dropout,
            attention_probs_dropout_prob=self.encoder_dropout,
            classifier_dropout_prob=self.classifier_dropout,
        )

    def changed(self, source: str, **values: Any) -> Recipe:
        """The recipe with other values that come from `source`; those that are as they were keep their own."""
        new = {name: value for name, value in values.items() if value != getattr(self, name)}
        return dataclasses.replace(self, **new, sources={**self.sources, **dict.fromkeys(new, source)})


def _ours(learning_rate: float, epochs: float, *, batch: int = 32, **settings: int) -> Recipe:
    values = {
        "learning_rate": learning_rate,
        "train_batch_size": batch,
        "encoder_dropout": 0.0,
        "classifier_dropout": 0.1,
        "num_train_epochs": epochs,
        "warmup_proportion": 0.1,
        "max_seq_length": 512,  # padding follows the batch, so the limit costs nothing where texts are short
        "least_steps": 500,
        **settings,
    }
    return Recipe(**values, sources=dict.fromkeys(values, OURS))  # type: ignore[arg-type]


# Tasks that the paper does not have. The rates lie between those of Table 14 for files of like size.
OTHERS = {
    "text_file": _ours(2e-5, 3),
    "choice_file": _ours(2e-5, 4),
    "dream": _ours(2e-5, 5),
    "conll": _ours(5e-5, 5),
    "afqmc": _ours(2e-5, 3),
    "lcqmc": _ours(2e-5, 3),
    "chnsenticorp": _ours(2e-5, 5),
    "cmnli": _ours(3e-5, 3, batch=64),
    "cmrc2018": _ours(3e-5, 2, **_SETTINGS_OF_SQUAD),
    "jsquad": _ours(3e-5, 2, **_SETTINGS_OF_SQUAD),
}


def paper_recipe(task_name: str) -> Recipe:
    """Table 14's row for a task, with the settings that the released scripts have by default.

    Raises:
        InputError: the table has no such task.
    """
    if task_name not in PAPER:
        raise InputError(f"the paper has no recipe for {task_name!r}: Table 14 has {', '.join(PAPER)}")
    row, settings = PAPER[task_name], _SETTINGS.get(task_name, {})
    values = {
        "learning_rate": row.learning_rate,
        "train_batch_size": row.train_batch_size,
        "encoder_dropout": row.encoder_dropout,
        "classifier_dropout": row.classifier_dropout,
        "num_train_epochs": row.num_train_steps * row.train_batch_size / row.official_rows,
        "warmup_proportion": row.num_warmup_steps / row.num_train_steps,
        "max_seq_length": row.max_seq_length,
    }
    sources = {**dict.fromkeys(values, TABLE_14), **dict.fromkeys(settings, "default of the released script")}
    notes = (NOTES[task_name],) if task_name in NOTES else ()
    official = row.official_rows
    return Recipe(**values, **settings, official_examples=official, sources=sources, notes=notes)  # type: ignore[arg-type]


def find_recipe(task_name: str, config: AlbertConfig | None = None) -> Recipe:
    """The recipe for a task and a model.

    Args:
        task_name: `Task.name`.
        config: of the pre-trained model. Without dropout in it, it is taken for one of the second version, or for the
            first's xxlarge; without a config the recipe is the paper's.

    Raises:
        InputError: there is no recipe for such a task.
    """
    if task_name not in PAPER and task_name not in OTHERS:
        raise InputError(f"there is no recipe for {task_name!r}: there are those for {', '.join((*PAPER, *OTHERS))}")
    recipe = paper_recipe(task_name) if task_name in PAPER else OTHERS[task_name]
    if config is None:
        return recipe
    has_dropout = config.hidden_dropout_prob > 0 or config.attention_probs_dropout_prob > 0
    if task_name == "race" and not has_dropout:
        recipe = recipe.changed(README, learning_rate=1e-5, encoder_dropout=0.0)
    if config.hidden_size >= LARGE_HIDDEN_SIZE and not has_dropout:
        rate = min(recipe.learning_rate, LARGE_RATE)
        warmup = max(recipe.warmup_proportion, LARGE_WARMUP)
        recipe = recipe.changed(LARGE, learning_rate=rate, warmup_proportion=warmup, encoder_dropout=0.0)
    for hidden_size, rate, source in SMALL_RATES:
        if config.hidden_size <= hidden_size:
            recipe = recipe.changed(source, learning_rate=max(recipe.learning_rate, rate))
            break
    return recipe.changed(LIMIT, max_seq_length=min(recipe.max_seq_length, config.max_position_embeddings))
