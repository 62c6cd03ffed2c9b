"""The table of parts, shapes and parameters."""

from __future__ import annotations

import os

from albert_tf import config_files, describe
from albert_tf.config import AlbertConfig


def test_table_counts_shared_parts_once_beside_the_papers_figure():
    config = AlbertConfig.from_json_file(config_files.config_path("albert_base_v1"))
    lines = describe.table(config).splitlines()
    assert sum("attention_1/self/query/kernel" in line for line in lines) == 1
    assert any("attention" in line and "1 for 12 layers" in line and "2,363,904" in line for line in lines)
    assert any("embeddings, encoder and pooler" in line and "11,683,584" in line for line in lines)
    assert any("heads" in line and "11,813,810" in line for line in lines)
    assert lines[-1] == "the paper's figure: 12M"


def test_the_papers_figures_are_near_ours():
    for (layers, width, embedding, sharing), figure in describe.PAPER_PARAMETERS.items():
        config = AlbertConfig(
            vocab_size=30000,
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=width // 64,
            intermediate_size=4 * width,
            embedding_size=embedding,
            parameter_sharing=sharing,
        )
        assert describe.paper_figure(config) == figure
        millions = float(figure.split("M")[0])
        assert abs(config.parameter_count() / 1e6 - millions) / millions < 0.06


def test_a_size_outside_the_paper_has_no_figure():
    config = AlbertConfig.from_json_file(config_files.config_path("albert_base_v1"))
    assert describe.paper_figure(config.replace(num_hidden_groups=2)) == "not in the paper"
    assert describe.paper_figure(config.replace(vocab_size=21128)) == "not in the paper"
    assert describe.paper_figure(config.replace(intermediate_size=1000)) == "not in the paper"


def test_a_released_size_has_a_recipe(tmp_path):
    path = config_files.config_path("albert_base_v1")
    assert config_files.recipe_path(path).endswith(os.path.join("recipes", "albert_base_v1.flags"))
    assert config_files.recipe_path(config_files.config_path("albert_tiny")) is None
    assert config_files.recipe_path(str(tmp_path / "albert_base_v1.json")) is None
