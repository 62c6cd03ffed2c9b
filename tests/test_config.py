"""AlbertConfig: the released JSON, the checks, the sharing rule and the exact parameter counts."""

from __future__ import annotations

import json

import pytest

from albert_tf import config_files
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError

SMALL = {
    "vocab_size": 50,
    "hidden_size": 24,
    "num_hidden_layers": 4,
    "num_attention_heads": 3,
    "intermediate_size": 48,
    "embedding_size": 8,
}


def shipped(name: str) -> AlbertConfig:
    return AlbertConfig.from_json_file(config_files.config_path(name))


# Exact counts by the formula of the paper's parts; the encoder with pooler, and with both heads.
SIZES = {
    "albert_base_v1": (11_683_584, 11_813_810),
    "albert_base_v2": (11_683_584, 11_813_810),
    "albert_large_v1": (17_683_968, 17_847_474),
    "albert_large_v2": (17_683_968, 17_847_474),
    "albert_xlarge_v1": (58_724_864, 59_021_490),
    "albert_xlarge_v2": (58_724_864, 59_021_490),
    "albert_xxlarge_v1": (222_595_584, 223_158_450),
    "albert_xxlarge_v2": (222_595_584, 223_158_450),
    "bert_base": (109_081_344, 109_705_010),
    "bert_large": (334_607_360, 335_691_058),
    "bert_xlarge": (1_275_291_648, 1_279_526_194),
}


@pytest.mark.parametrize("name", SIZES)
def test_parameter_count_of_every_size(name):
    config = shipped(name)
    assert (config.parameter_count(), config.parameter_count(heads=True)) == SIZES[name]


# Embedding size x sharing at base size (paper tables 3 and 4): all, attention, ffn, none.
CELLS = {
    64: (9_681_408, 61_645_056, 35_684_352, 87_648_000),
    128: (11_683_584, 63_647_232, 37_686_528, 89_650_176),
    256: (15_687_936, 67_651_584, 41_690_880, 93_654_528),
    768: (31_114_752, 83_078_400, 57_117_696, 109_081_344),
}


@pytest.mark.parametrize("embedding_size", CELLS)
@pytest.mark.parametrize("index, sharing", enumerate(["all", "attention", "ffn", "none"]))
def test_embedding_size_by_sharing(embedding_size, index, sharing):
    config = shipped("albert_base_v1").replace(embedding_size=embedding_size, parameter_sharing=sharing)
    assert config.parameter_count() == CELLS[embedding_size][index]


def test_parts_of_base_size():
    assert shipped("albert_base_v1").parameter_counts() == {
        "embeddings": 3_906_048,
        "projection": 99_072,
        "attention": 2_363_904,
        "feed_forward": 4_723_968,
        "pooler": 590_592,
        "masked_lm_head": 128_688,
        "sentence_head": 1_538,
    }


@pytest.mark.parametrize(
    "groups, count",
    [(1, 11_683_584), (2, 18_771_456), (3, 25_859_328), (4, 32_947_200), (6, 47_122_944), (12, 89_650_176)],
)
def test_groups_at_base_size(groups, count):
    assert shipped("albert_base_v1").replace(num_hidden_groups=groups).parameter_count() == count


@pytest.mark.parametrize(
    "width, count", [(1024, 17_683_968), (2048, 58_724_864), (4096, 222_595_584), (6144, 495_518_208)]
)
def test_width_of_table_12(width, count):
    config = AlbertConfig(
        vocab_size=30000, hidden_size=width, num_hidden_layers=3, num_attention_heads=16, intermediate_size=4 * width
    )
    assert config.parameter_count() == count


def test_dropout_of_the_released_versions():
    rates = {name: shipped(name).hidden_dropout_prob for name in SIZES}
    assert {name for name, rate in rates.items() if rate == 0.1 and name.startswith("albert")} == {
        "albert_base_v1",
        "albert_large_v1",
        "albert_xlarge_v1",
    }
    assert all(shipped(name).attention_probs_dropout_prob == rate for name, rate in rates.items())
    assert shipped("albert_xlarge_v2").num_attention_heads == 16  # as released; the paper's text says H / 64


def test_group_of_layer_is_the_released_floating_point_rule():
    config = AlbertConfig(**{**SMALL, "num_hidden_layers": 22, "num_hidden_groups": 22})
    assert config.layer_parts()[15] == (14, 14)  # an integer division would give 15
    fast = AlbertConfig(**{**SMALL, "num_hidden_groups": 12})
    assert fast.layer_parts() == [(0, 0), (3, 3), (6, 6), (9, 9)]


def test_sharing_one_part_only():
    config = AlbertConfig(**SMALL, num_hidden_groups=2, parameter_sharing="attention")
    assert config.layer_parts() == [(0, 0), (0, 1), (1, 2), (1, 3)]
    assert config.replace(parameter_sharing="ffn").layer_parts() == [(0, 0), (1, 0), (2, 1), (3, 1)]


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"hidden_size": 25}, ["25", "num_attention_heads 3"]),
        ({"num_hidden_layers": 12, "num_hidden_groups": 5}, ["12", "5"]),
        ({"num_hidden_groups": 2, "parameter_sharing": "none"}, ["num_hidden_groups is 2", "none"]),
        ({"parameter_sharing": "some"}, ["'some'", "attention"]),
        ({"hidden_act": "geluu"}, ["'geluu'", "'gelu'"]),
        ({"hidden_dropout_prob": 1.0}, ["hidden_dropout_prob is 1.0"]),
        ({"attention_probs_dropout_prob": "0.1"}, ["'0.1'"]),
        ({"vocab_size": 0}, ["vocab_size is 0"]),
        ({"num_attention_heads": 3.0}, ["3.0"]),
        ({"initializer_range": 0}, ["initializer_range is 0"]),
        ({"hidden_sise": 3}, ["unknown key 'hidden_sise'", "hidden_size"]),
        ({"ln_type": "preln"}, ["preln"]),
    ],
)
def test_a_wrong_value_is_named(changes, words):
    with pytest.raises(InputError) as error:
        AlbertConfig.from_dict({**SMALL, **changes})
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)


def test_missing_key_and_broken_file_are_named(tmp_path):
    with pytest.raises(InputError, match="'vocab_size' is missing"):
        AlbertConfig.from_dict({key: value for key, value in SMALL.items() if key != "vocab_size"})
    broken = tmp_path / "broken.json"
    broken.write_text('{"vocab_size": ')
    with pytest.raises(InputError, match="broken.json is not a JSON file"):
        AlbertConfig.from_json_file(broken)
    broken.write_text("[1]")
    with pytest.raises(InputError, match="no JSON object"):
        AlbertConfig.from_json_file(broken)
    with pytest.raises(InputError, match="absent.json"):
        AlbertConfig.from_json_file(tmp_path / "absent.json")


def test_released_json_comes_back_unchanged(tmp_path):
    released = {
        **SMALL,
        "attention_probs_dropout_prob": 0,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0,
        "initializer_range": 0.02,
        "max_position_embeddings": 512,
        "num_hidden_groups": 1,
        "net_structure_type": 0,
        "layers_to_keep": [],
        "gap_size": 0,
        "num_memory_blocks": 0,
        "inner_group_num": 1,
        "down_scale_factor": 1,
        "type_vocab_size": 2,
    }
    config = AlbertConfig.from_dict(released)
    config.to_json_file(tmp_path / "config.json")
    assert json.loads((tmp_path / "config.json").read_text()) == released
    assert AlbertConfig.from_json_file(tmp_path / "config.json") == config
    shared = config.replace(parameter_sharing="ffn", classifier_dropout_prob=0.2)
    assert AlbertConfig.from_dict(shared.to_dict()) == shared


def test_published_files_are_read(shared):
    folders = sorted((shared / "data").glob("albert_*/albert_config*.json"))
    assert len(folders) >= 10
    for path in folders:
        values = json.loads(path.read_text())
        if values.get("ln_type") == "preln":  # one file of the other family's
            with pytest.raises(InputError, match="preln"):
                AlbertConfig.from_json_file(path)
            continue
        written = AlbertConfig.from_json_file(path).to_dict()
        assert {key: written[key] for key in values} == values, path
