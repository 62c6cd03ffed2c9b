"""Imports run one way, and what is heavy or differs between the stacks is imported in one place."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tests import source_files

# A module or package of this chain may import those before it, never those behind it.
CHAIN = (
    "config",
    "head_config",
    "formats",
    "loading",
    "layers",
    "embeddings",
    "encoder",
    "heads",
    "task_heads",
    "pretrained_model",
    "models",
    "task_models",
    "tasks",
    "task_kinds",
    "exporting",
    "convert",
)
NETWORK = {"fused", "layers", "embeddings", "encoder", "heads", "task_heads"}
MODEL_MODULES = {*CHAIN[1:], "describe", "fused", "weight_names"} - {"tasks"}
KNOWS_NO_MODEL = {
    "losses",
    "loss_scale",
    "metrics",
    "optimization",
    "optimizers",
    "schedules",
    "distribution",
    "task_losses",
}
TRAINING = (KNOWS_NO_MODEL - {"metrics"}) | {
    "checkpointing",
    "evaluation",
    "finetuning",
    "finetuning_run",
    "finetuning_state",
    "finetuning_step",
    "input_pipeline",
    "pretraining_step",
    "training_log",
    "training_step",
}
PREPARATION_MAY_IMPORT = {
    *("errors", "files", "progress", "record_metadata", "record_spec", "text_cleanup", "tokenization", "tokenizer")
}
LIGHT_MODULES = (
    "albert_tf",
    "albert_tf.config",
    "albert_tf.config_files",
    "albert_tf.tokenization",
    "albert_tf.tasks.catalogue",
    "albert_tf.tasks.recipes",
    "data_prep.create_pretraining_data",
    "data_prep.train_sentencepiece",
    "data_prep.python_documentation",
)


def imported(name: str) -> set[str]:
    """The modules that a module imports, wherever in it the import stands."""
    return {module for module, _ in source_files.imports(source_files.modules()[name], name)}


def own_imports(name: str) -> set[str]:
    """The modules of albert_tf that a module imports, by their first name inside the package."""
    return {module.split(".")[1] for module in imported(name) if module.startswith("albert_tf.")}


ALBERT_TF = [name for name in source_files.modules() if name.startswith("albert_tf.")]
DATA_PREP = [name for name in source_files.modules() if name.startswith("data_prep")]


@pytest.mark.parametrize("name", ["albert_tf", *ALBERT_TF])
def test_albert_tf_knows_no_preparation(name):
    assert not {module for module in imported(name) if module.split(".")[0] in ("data_prep", "tests", "benchmarks")}


@pytest.mark.parametrize("name", DATA_PREP)
def test_preparation_imports_the_light_modules_alone(name):
    assert own_imports(name) <= PREPARATION_MAY_IMPORT
    assert not {module for module in imported(name) if module.split(".")[0] in ("tests", "benchmarks")}


def modules_of(name: str) -> list[str]:
    """The module of that first name inside the package, or all those of the package that it is."""
    prefix = f"albert_tf.{name}"
    return [module for module in ALBERT_TF if module == prefix or module.startswith(f"{prefix}.")]


def test_every_name_in_a_rule_is_a_module():
    named = {*CHAIN, *NETWORK, *MODEL_MODULES, *KNOWS_NO_MODEL, *TRAINING, *PREPARATION_MAY_IMPORT}
    assert not {name for name in named if not modules_of(name)}
    assert set(LIGHT_MODULES) <= set(source_files.modules())


@pytest.mark.parametrize("position", range(len(CHAIN)))
def test_the_model_chain_runs_one_way(position):
    for name in modules_of(CHAIN[position]):
        assert not own_imports(name) & set(CHAIN[position + 1 :]), name


@pytest.mark.parametrize("first_name", sorted(NETWORK))
def test_the_network_knows_no_files(first_name):
    for name in modules_of(first_name):
        assert not own_imports(name) & {"files", "storage", "formats", "loading", "head_config"}, name


@pytest.mark.parametrize("first_name", sorted(KNOWS_NO_MODEL))
def test_losses_and_optimization_know_no_model(first_name):
    for name in modules_of(first_name):
        assert not own_imports(name) & MODEL_MODULES, name


@pytest.mark.parametrize("first_name", sorted(MODEL_MODULES))
def test_the_model_knows_no_training(first_name):
    formulas = {"task_losses"} if first_name == "task_kinds" else set()
    for name in modules_of(first_name):
        assert not own_imports(name) & (TRAINING - formulas), name


def test_nothing_imports_a_script():
    scripts = set(source_files.scripts())
    assert {"albert_tf.run_pretraining", "data_prep.create_pretraining_data"} <= scripts
    for name in source_files.modules():
        assert not imported(name) & scripts, name


def test_there_is_no_cycle():
    graph = {
        name: {module for module, node in source_files.imports(tree, name) if node.col_offset == 0}
        & set(source_files.modules())
        for name, tree in source_files.modules().items()
    }
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " -> ".join([*above, name])
        if name not in done:
            for other in sorted(graph[name]):
                visit(other, (*above, name))
            done.add(name)

    for name in graph:
        visit(name, ())


@pytest.mark.parametrize("name", sorted(source_files.modules()))
def test_optional_packages_are_imported_where_they_are_used(name):
    """TensorFlow Text has no wheel for some machines and tensorflow-addons none for Python 3.12: never at the top.

    The modules that are written around TensorFlow Text may, and are themselves imported where they are used.
    """
    optional = {"keras", "matplotlib", "sklearn"}
    optional |= {"tensorflow_addons", "tensorflow_serving", "tensorflow_text"}
    optional |= {"ai_edge_litert", "onnx", "onnxruntime", "openvino"}
    inside_functions = {
        "albert_tf.tokenization_graph",
        "albert_tf.aligned_texts",
        "albert_tf.normalizer_graph",
        "albert_tf.offsets_graph",
        "albert_tf.exporting.answer_search",
        "albert_tf.exporting.answer_windows",
    }
    top = {module for module, node in source_files.imports(source_files.modules()[name], name) if node.col_offset == 0}
    if name not in inside_functions:
        assert not top & inside_functions
        assert not {module for module in top if module.split(".")[0] in optional}
    if name != "albert_tf.stack":
        assert not {module for module in imported(name) if module.split(".")[0] in ("tensorflow_addons", "keras")}


@pytest.mark.parametrize("name", sorted(source_files.modules()))
def test_one_module_asks_which_stack_it_is(name):
    if name in ("albert_tf.stack", "albert_tf.versions"):
        return
    questions = [
        node.test if isinstance(node, (ast.If, ast.IfExp)) else node
        for node in ast.walk(source_files.modules()[name])
        if isinstance(node, (ast.If, ast.IfExp, ast.Compare))
    ]
    assert not [text for text in map(ast.unparse, questions) if "__version__" in text or "version.VERSION" in text]
    assert not {module for module in imported(name) if module in ("importlib.metadata", "pkg_resources")}


@pytest.mark.parametrize("name", sorted(source_files.modules()))
def test_no_tensorflow_1(name):
    attributes = {ast.unparse(n) for n in ast.walk(source_files.modules()[name]) if isinstance(n, ast.Attribute)}
    assert not {text for text in attributes if text.startswith(("tf.contrib", "tf.estimator", "tf.compat.v1.Session"))}
    assert not {
        module for module in imported(name) if module.startswith(("tensorflow.contrib", "tensorflow_estimator"))
    }


def test_light_modules_leave_tensorflow_alone():
    code = f"import sys, {', '.join(LIGHT_MODULES)}; print(sorted({{'tensorflow', 'keras'}} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], cwd=source_files.REPOSITORY, capture_output=True, text=True)
    assert (result.returncode, result.stdout.strip()) == (0, "[]"), result.stderr
