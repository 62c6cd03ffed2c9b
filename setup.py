"""What is installed, and with which TensorFlow: one `pip install` is right on every supported Python."""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
import re
import site
import sys
from typing import NamedTuple

from setuptools import find_packages, setup

HERE = pathlib.Path(__file__).resolve().parent
OLD_STACK = 'python_version < "3.12"'
NEW_STACK = 'python_version >= "3.12"'
# Where TensorFlow Text has wheels. Elsewhere all but the text-in exports works without it.
OLD_WHEELS = 'sys_platform != "win32" and platform_machine == "x86_64"'
NEW_WHEELS = 'sys_platform != "win32"'


class Stack(NamedTuple):
    python: str  # the environment marker
    is_here: bool  # whether the marker holds for the Python that runs this file
    low: int  # the lowest and the highest x of TensorFlow 2.x
    high: int
    text_wheels: str


STACKS = (
    Stack(OLD_STACK, sys.version_info < (3, 12), 15, 15, OLD_WHEELS),
    Stack('python_version == "3.12"', sys.version_info[:2] == (3, 12), 18, 21, NEW_WHEELS),
    Stack('python_version >= "3.13"', sys.version_info >= (3, 13), 20, 21, NEW_WHEELS),
)
# TensorFlow under another name; `tensorflow` installed beside one of them would overwrite its files.
OTHER_TENSORFLOWS = ("tensorflow-cpu", "tensorflow-rocm", "tensorflow-macos", "intel-tensorflow")


def installed_minor(name: str) -> int | None:
    """The x of the `name` 2.x in the environment that is installed into (not pip's isolated build environment)."""
    directories = site.getsitepackages()
    if sys.prefix == sys.base_prefix:
        directories.append(site.getusersitepackages())
    for distribution in importlib.metadata.distributions(name=name, path=directories):
        match = re.match(r"2\.(\d+)", distribution.version)
        if match:
            return int(match.group(1))
    return None


def tensorflow_requirements(stack: Stack, keep_installed: bool) -> list[str]:
    """TensorFlow and the TensorFlow Text of the same minor, for the Pythons of one stack.

    pip answers an open range of TensorFlow Text with its newest release, which then moves a TensorFlow that already
    fits. `keep_installed` asks for the Text of the installed TensorFlow's own minor instead, and for neither of the
    two where TensorFlow is there under another name.
    """
    text_low, text_high = stack.low, stack.high
    if keep_installed and stack.is_here:
        minor = installed_minor("tensorflow")
        if minor is None and any(
            stack.low <= (installed_minor(other) or 0) <= stack.high for other in OTHER_TENSORFLOWS
        ):
            return []
        if minor is not None and stack.low <= minor <= stack.high:
            text_low = text_high = minor
    return [
        f"tensorflow>=2.{stack.low},<2.{stack.high + 1}; {stack.python}",
        f"tensorflow-text>=2.{text_low},<2.{text_high + 1}; {stack.python} and {stack.text_wheels}",
    ]


def version() -> str:
    text = (HERE / "albert_tf" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)[1]


# A wheel for other machines is built with ALBERT_TF_ANY_TENSORFLOW=1 (`make wheel`): it keeps the whole ranges.
KEEP_INSTALLED = os.environ.get("ALBERT_TF_ANY_TENSORFLOW") != "1"
# TensorFlow 2.15 holds ml-dtypes at a release that newer ones of onnx cannot use.
ONNX = [f"onnx>=1.16,<1.19; {OLD_STACK}", f"onnx>=1.16; {NEW_STACK}", "onnxruntime>=1.18"]
OPENVINO = ["openvino>=2024.4"]
LITERT = ["ai-edge-litert>=1.2; sys_platform != 'win32'"]
SERVE = ["aiohttp>=3.10", "prometheus_client>=0.20"]

setup(
    name="albert_tf",
    version=version(),
    description="ALBERT in TensorFlow 2: text preparation, pre-training and fine-tuning",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author="The albert_tf authors",
    license="Apache-2.0",
    license_files=["LICENSE"],
    classifiers=["Programming Language :: Python :: 3", "Topic :: Scientific/Engineering :: Artificial Intelligence"],
    python_requires=">=3.9,<3.14",
    packages=[
        *find_packages(include=["albert_tf", "albert_tf.*", "data_prep", "data_prep.*"]),
        "albert_tf.configs",
    ],
    package_dir={"albert_tf.configs": "configs"},
    package_data={"albert_tf.configs": ["*.json", "recipes/*.flags"]},
    install_requires=[
        *(requirement for stack in STACKS for requirement in tensorflow_requirements(stack, KEEP_INSTALLED)),
        f"tensorflow-addons>=0.23,<0.24; {OLD_STACK} and {OLD_WHEELS}",
        f"tensorboard>=2.18; {NEW_STACK}",  # TensorFlow 2.21 needs it for tf.summary but does not bring it
        "absl-py>=1.4",
        "google-crc32c>=1.5",
        "numpy>=1.23.5",
        "safetensors>=0.4",
        "scikit-learn>=1.3",  # the metrics of the tasks; brings scipy, whose correlations they are
        "sentencepiece>=0.2,<0.2.2",  # 0.2.2 breaks ties otherwise than the copy inside TensorFlow Text
        "tqdm>=4.60",
    ],
    extras_require={
        "test": [
            *("pytest>=7.4", "pytest-xdist>=3.5", "hypothesis>=6.90", "scipy>=1.10", "setuptools>=70.1,<82"),
            *("matplotlib>=3.7", "nbclient>=0.8", "ipykernel>=6.20"),  # the notebook
            *SERVE,
            *(*ONNX, *OPENVINO, *LITERT),  # what exports for other runtimes are run by
        ],
        "peers": ["torch>=2.2", "transformers>=4.46"],
        "lint": ["ruff>=0.17.6,<0.18", "mypy>=1.10"],
        "plots": ["matplotlib>=3.7"],
        "serve": SERVE,
        "tf_serving": ["tensorflow-serving-api>=2.15,<2.22"],  # requests in TF Serving's form: warm-up, gRPC client
        "onnx": ONNX,
        "openvino": [*ONNX, *OPENVINO],
        "tflite": LITERT,  # TensorFlow alone writes and runs the files too
    },
)
