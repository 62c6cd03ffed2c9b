"""Live against Hugging Face transformers on PyTorch: the same numbers, and files that go either way."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: make test-peers installs it")
transformers = pytest.importorskip("transformers", reason="needs transformers: make test-peers installs it")

from albert_tf import models, task_models  # noqa: E402
from albert_tf.config import AlbertConfig  # noqa: E402
from albert_tf.errors import InputError  # noqa: E402
from albert_tf.formats import hugging_face, hugging_face_config, hugging_face_tensors  # noqa: E402
from albert_tf.formats.checkpoint import Checkpoint, Vocabulary  # noqa: E402
from albert_tf.head_config import LABELLED_KINDS, HeadConfig  # noqa: E402
from tests import toy_vocabulary  # noqa: E402
from tests.hugging_face_files import CLASSES, SIZES  # noqa: E402

TOLERANCE = 2e-5
OURS = {
    "encoder": models.AlbertModel,
    "pretraining": models.AlbertForPreTraining,
    "masked_lm": task_models.AlbertForMaskedLM,
    "classifier": task_models.AlbertForSequenceClassification,
    "multiple_choice": task_models.AlbertForMultipleChoice,
    "span": task_models.AlbertForQuestionAnswering,
    "tagger": task_models.AlbertForTokenClassification,
}
KINDS = {kind: architecture for architecture, kind in CLASSES.items()}
VARIANTS: dict[str, dict[str, Any]] = {
    "shared": {},
    "groups": {"num_hidden_groups": 2},
    "inner_groups": {"num_hidden_groups": 2, "inner_group_num": 2},
    "unshared": {"num_hidden_groups": 4},
    "equal_widths": {"embedding_size": 24},
    "exact_gelu": {"hidden_act": "gelu"},
    "relu_and_epsilon": {"hidden_act": "relu", "layer_norm_eps": 1e-3},
}


def head_of(kind: str) -> HeadConfig:
    return HeadConfig(kind, 3 if kind in LABELLED_KINDS else None)


def random_value(random: np.random.Generator, name: str, shape: tuple[int, ...], scale: float) -> np.ndarray:
    """Norms around 1, biases far from 0, matrices and tables of `scale`."""
    mean = 1.0 if name.endswith("gamma") else 0.0
    spread = scale if len(shape) > 1 else 0.2
    return random.normal(mean, spread, shape).astype(np.float32)


def our_model(kind: str, config: AlbertConfig, scale: float) -> Any:
    """One of our models with random weights."""
    model = OURS[kind](config, head=head_of(kind)) if kind in LABELLED_KINDS else OURS[kind](config)
    random = np.random.default_rng(0)
    for name, variable in model.named_variables().items():
        variable.assign(random_value(random, name, tuple(variable.shape), scale))
    return model


def checkpoint_of(model: Any, kind: str, vocabulary: Vocabulary | None = None) -> Checkpoint:
    weights = {name: np.array(variable) for name, variable in model.named_variables().items()}
    return Checkpoint("here", "model", weights, model.config, head_of(kind), vocabulary=vocabulary)


def their_config(**changes: Any) -> Any:
    return transformers.AlbertConfig(**{**SIZES, **changes})


def their_model(kind: str, config: Any) -> Any:
    """One of their models with random weights, biases and norms included."""
    if kind in LABELLED_KINDS:
        config.num_labels = 3
    model = getattr(transformers, KINDS[kind])(config)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            mean = 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.2 + mean)
    return model.eval()


def load_theirs(kind: str, directory: pathlib.Path) -> Any:
    """Opens a directory by their class; every key is used and none is missing."""
    model, info = getattr(transformers, KINDS[kind]).from_pretrained(directory, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"], info
    return model.eval()


def load_ours(path: pathlib.Path) -> Any:
    """Makes our model of a checkpoint; every name is used and none is missing."""
    checkpoint = hugging_face.read(path)
    kind = checkpoint.head.kind
    model = OURS[kind](checkpoint.config, head=checkpoint.head)
    variables = model.named_variables()
    assert set(variables) == set(checkpoint.weights)
    for name, variable in variables.items():
        variable.assign(checkpoint.weights[name])
    return model


def some_inputs(kind: str, vocab_size: int, batch: int = 3, length: int = 16) -> dict[str, np.ndarray]:
    """Pieces with ragged masks, one with a hole, [batch, length]; with two choices each where the head needs them."""
    random = np.random.default_rng(1)
    shape = (batch, 2, length) if kind == "multiple_choice" else (batch, length)
    ends = np.linspace(length, length // 3, int(np.prod(shape[:-1]))).astype(int).reshape(shape[:-1])
    mask = (np.arange(length) < ends[..., None]).astype(np.int32)
    mask[..., 3:5][-1] = 0
    return {
        "input_ids": random.integers(5, vocab_size, shape, dtype=np.int32),
        "input_mask": mask,
        "segment_ids": random.integers(0, 2, shape, dtype=np.int32),
    }


def their_outputs(model: Any, inputs: dict[str, np.ndarray]) -> Any:
    names = {"input_ids": "input_ids", "input_mask": "attention_mask", "segment_ids": "token_type_ids"}
    tensors = {names[name]: torch.tensor(value, dtype=torch.long) for name, value in inputs.items()}
    with torch.no_grad():
        return model(**tensors, output_hidden_states=True)


def both_outputs(kind: str, ours: Any, theirs: Any) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """(what, ours, theirs) for everything a head gives."""
    inputs = some_inputs(kind, ours.config.vocab_size)
    mine, other = ours(inputs), their_outputs(theirs, inputs)
    if kind in ("encoder", "pretraining"):
        pairs = [
            (f"layer {i}", a, b) for i, (a, b) in enumerate(zip(mine["all_layer_outputs"], other.hidden_states[1:]))
        ]
        pairs.append(("projected embedding", mine["projected_embedding"], other.hidden_states[0]))
        assert len(mine["all_layer_outputs"]) == len(other.hidden_states) - 1
        if kind == "encoder":
            pairs.append(("sequence output", mine["sequence_output"], other.last_hidden_state))
            pairs.append(("pooled output", mine["pooled_output"], other.pooler_output))
        else:
            pairs.append(("masked-LM logits", mine["masked_lm_logits"], other.prediction_logits))
            pairs.append(("sentence logits", mine["sentence_order_logits"], other.sop_logits))
    elif kind == "span":
        pairs = [(name, mine[name], other[name]) for name in ("start_logits", "end_logits")]
    else:
        pairs = [("logits", mine, other.logits)]
    return [(name, np.asarray(a), b.numpy()) for name, a, b in pairs]


def assert_same_numbers(kind: str, ours: Any, theirs: Any, tolerance: float = TOLERANCE) -> None:
    for name, mine, other in both_outputs(kind, ours, theirs):
        assert mine.shape == other.shape and np.std(other) > 1e-2, name
        np.testing.assert_allclose(mine, other, rtol=0, atol=tolerance, err_msg=name)


# ---- the numbers at real size


@pytest.mark.parametrize("hidden_act", ["gelu", "gelu_erf"])
def test_base_size_gives_the_same_numbers(tmp_path, hidden_act):
    """12 layers of width 768, matrices at three times the initial spread; every layer is compared."""
    config = AlbertConfig(
        vocab_size=30000,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        hidden_act=hidden_act,
    )
    ours = our_model("pretraining", config, scale=0.06)
    assert hugging_face.write(checkpoint_of(ours, "pretraining"), tmp_path / "model") == ()
    theirs = load_theirs("pretraining", tmp_path / "model")
    differences = {name: float(np.abs(a - b).max()) for name, a, b in both_outputs("pretraining", ours, theirs)}
    print({name: f"{difference:.1e}" for name, difference in differences.items()})  # shown with pytest -s
    assert max(differences.values()) < TOLERANCE, differences


# ---- what we write, opened by transformers


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_transformers_opens_what_we_write(tmp_path, kind, variant):
    values = their_config(**VARIANTS[variant]).to_dict()
    config = hugging_face_config.read_config(values, "config.json")
    ours = our_model(kind, config, scale=0.2)
    assert hugging_face.write(checkpoint_of(ours, kind), tmp_path / "model") == ()
    assert_same_numbers(kind, ours, load_theirs(kind, tmp_path / "model"))


@pytest.mark.parametrize(
    "changes",
    [
        {"parameter_sharing": "attention"},
        {"parameter_sharing": "ffn", "num_hidden_groups": 2},
        {"parameter_sharing": "none", "inner_group_num": 2},
        {"num_hidden_layers": 22, "num_hidden_groups": 22},
        {"num_hidden_groups": 12},
        {"embedding_size": 24},
    ],
)
def test_what_their_classes_cannot_hold_is_converted(tmp_path, changes):
    config = AlbertConfig.from_dict({**SIZES, **changes})
    ours = our_model("pretraining", config, scale=0.2)
    hugging_face.write(checkpoint_of(ours, "pretraining"), tmp_path / "model")
    assert_same_numbers("pretraining", ours, load_theirs("pretraining", tmp_path / "model"))


# ---- what transformers wrote, read by us


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_we_read_what_transformers_writes(tmp_path, kind, variant):
    theirs = their_model(kind, their_config(**VARIANTS[variant]))
    theirs.save_pretrained(tmp_path / "theirs")
    assert_same_numbers(kind, load_ours(tmp_path / "theirs"), theirs)
    hugging_face.write(hugging_face.read(tmp_path / "theirs"), tmp_path / "ours")
    before, after = (
        hugging_face_tensors.read_tensors(str(tmp_path / name / "model.safetensors"))[0] for name in ("theirs", "ours")
    )
    assert set(before) == set(after)
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value, err_msg=name)


@pytest.mark.parametrize("kind", ["encoder", "pretraining", "span"])
def test_we_read_their_shards(tmp_path, kind):
    theirs = their_model(kind, their_config())
    theirs.save_pretrained(tmp_path, max_shard_size="10KB")
    assert (tmp_path / "model.safetensors.index.json").is_file()
    assert_same_numbers(kind, load_ours(tmp_path), theirs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_we_read_a_pytorch_file(tmp_path, kind, dtype):
    """As transformers 4 wrote it: the whole state_dict, tied copies included."""
    theirs = their_model(kind, their_config()).to(dtype)
    theirs.config.architectures = [KINDS[kind]]
    theirs.config.save_pretrained(tmp_path)
    torch.save(theirs.state_dict(), tmp_path / "pytorch_model.bin")
    assert_same_numbers(kind, load_ours(tmp_path), theirs.float())


def test_a_file_that_holds_code_is_not_run(tmp_path):
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (pathlib.Path.touch, (tmp_path / "sprung",))

    torch.save({"albert.pooler.weight": Trap()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match="it is damaged, or holds more than tensors"):
        hugging_face.read(tmp_path)
    assert not (tmp_path / "sprung").exists()


def test_the_two_gelus_are_told_apart(tmp_path):
    theirs = {act: their_model("encoder", their_config(hidden_act=act)) for act in ("gelu", "gelu_new")}
    theirs["gelu"].save_pretrained(tmp_path)
    ours = load_ours(tmp_path)
    assert_same_numbers("encoder", ours, theirs["gelu"])
    sequence = both_outputs("encoder", ours, theirs["gelu_new"])[-2]
    assert np.abs(sequence[1] - sequence[2]).max() > 2 * TOLERANCE


# ---- the tokenizer


def test_their_tokenizer_opens_ours(tmp_path):
    lines = ["the cat sat on the mat and the dog ran to the house " * 3] * 50
    data = toy_vocabulary.train_model(lines, 40, hard_vocab_limit=False)
    vocabulary = Vocabulary("30k-clean.model", data)
    model = our_model("encoder", AlbertConfig.from_dict({**SIZES}), scale=0.2)
    hugging_face.write(checkpoint_of(model, "encoder", vocabulary), tmp_path)
    mine = vocabulary.tokenizer()
    for theirs in (
        transformers.AlbertTokenizer.from_pretrained(tmp_path),
        transformers.AutoTokenizer.from_pretrained(tmp_path),
    ):
        special = [
            theirs.pad_token_id,
            theirs.unk_token_id,
            theirs.cls_token_id,
            theirs.sep_token_id,
            theirs.mask_token_id,
        ]
        assert special == [mine.pad_id, mine.unk_id, mine.cls_id, mine.sep_id, mine.mask_id]
        for text in ("The cat sat on the mat", "a  DOG\tand thé house"):
            ids = [mine.cls_id, *mine.encode(text), mine.sep_id]
            assert theirs(text)["input_ids"] == ids


def test_their_wordpiece_tokenizer_opens_ours(tmp_path):
    with open(toy_vocabulary.wordpiece_vocabulary(), "rb") as file:
        vocabulary = Vocabulary("vocab.txt", file.read())
    model = our_model("encoder", AlbertConfig.from_dict({**SIZES}), scale=0.2)
    hugging_face.write(checkpoint_of(model, "encoder", vocabulary), tmp_path)
    theirs, mine = transformers.AutoTokenizer.from_pretrained(tmp_path), vocabulary.tokenizer()
    assert (theirs.pad_token_id, theirs.cls_token_id, theirs.mask_token_id) == (mine.pad_id, mine.cls_id, mine.mask_id)
    text = "The cafés sing 中文, a-b!"
    assert theirs(text)["input_ids"] == [mine.cls_id, *mine.encode(text), mine.sep_id]
