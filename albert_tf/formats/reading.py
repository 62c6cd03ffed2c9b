"""Any path a person may have to a `Checkpoint`: what is there is told by looking, never by its name alone."""

from __future__ import annotations

import os
import tarfile
import tempfile
from collections.abc import Callable

from albert_tf import public_models, storage
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats import archives, hugging_face, portable, tf1, tf_hub, training_run
from albert_tf.formats.checkpoint import Checkpoint

_HUGGING_FACE_FILES = (".safetensors", ".safetensors.index.json", ".bin", ".bin.index.json", ".h5")
_SAVED_MODEL_PARTS = ("variables", "assets")
_COMPANIONS = (".json", ".model", ".txt")  # config and vocabulary beside the files of a prefix
_KNOWN = (
    "a portable or Hugging Face directory, a .safetensors, .bin or .h5 file, a TF1 checkpoint (directory, prefix or "
    ".tar.gz), a TF-Hub module, or the output directory of a pre-training run"
)


def read_checkpoint(path: str | os.PathLike[str], config: AlbertConfig | None = None) -> Checkpoint:
    """Reads weights, config, head and vocabulary from whatever a path or the name of a public model stands for.

    Args:
        path: one of the forms above, a gs:// address of one, or a name such as `albert_base_v2`, which is downloaded
            once.
        config: the sizes, for a source that does not tell them (a bare TF1 prefix, some TF-Hub modules).

    Raises:
        InputError: nothing is there, it is none of these, or it is damaged; the sentence says what was looked for.
    """
    given = os.fspath(path)
    if not given:
        raise InputError(f"the path of the checkpoint is empty: give {_KNOWN}, or the name of a public model")
    if storage.is_remote(given):
        with tempfile.TemporaryDirectory() as directory:
            checkpoint = _read_local(_download(given, directory), config).replace(path=given)
    else:
        checkpoint = _read_local(public_models.resolve(given), config)
    return checkpoint if checkpoint.config or config is None else checkpoint.replace(config=config)


def _read_local(path: str, config: AlbertConfig | None) -> Checkpoint:
    if os.path.isdir(path):
        return _read_directory(path, config)
    if archives.is_archive(path):
        return tf_hub.read(path, config) if _holds_saved_model(path) else tf1.read(path)
    if path.endswith(_HUGGING_FACE_FILES) and os.path.isfile(path):
        return hugging_face.read(path)
    if os.path.isfile(f"{path}.index") or path.endswith(".index") or ".data-" in os.path.basename(path):
        return tf1.read(path)
    if os.path.exists(path):
        raise InputError(f"{path} holds no weights that are known here: give {_KNOWN}")
    raise InputError(
        f"{path} holds no weights: there is no such file or directory, and it is not one of the public models "
        f"{', '.join(public_models.public_names())}"
    )


def _read_directory(path: str, config: AlbertConfig | None) -> Checkpoint:
    names = set(os.listdir(path))
    if portable.CONFIG_FILE in names and portable.WEIGHTS_FILE in names:
        return portable.read(path)
    if "saved_model.pb" in names:
        return tf_hub.read(path, config)
    if any(name.endswith(_HUGGING_FACE_FILES) for name in names):
        return hugging_face.read(path)
    if training_run.is_checkpoint(path):
        return training_run.read(path)
    if any(name.endswith(".index") for name in names):
        return tf1.read(path)
    raise InputError(f"{path} holds no weights: none of its {len(names)} files is of a form known here; give {_KNOWN}")


def _holds_saved_model(archive: str) -> bool:
    try:
        with tarfile.open(archive) as tar:
            return any(os.path.basename(member.name) == "saved_model.pb" for member in tar)
    except (tarfile.TarError, OSError, EOFError):
        return False  # the reader of archives says what is wrong


def _download(path: str, directory: str) -> str:
    """Copies what an address names, a directory or the files of a prefix, to a local directory; returns its path."""
    if storage.is_directory(path):
        _copy_files(path, directory)
        newest = training_run.latest(path)
        parts = [os.path.join(training_run.CHECKPOINTS, storage.basename(newest))] if newest else []
        for part in [*_SAVED_MODEL_PARTS, *parts]:
            if storage.is_directory(storage.join(path, part)):
                os.makedirs(os.path.join(directory, part))
                _copy_files(storage.join(path, part), os.path.join(directory, part))
        return directory
    prefix = path.partition(".data-")[0]
    prefix = prefix[: -len(".index")] if prefix.endswith(".index") else prefix
    name = storage.basename(prefix)
    _copy_files(storage.dirname(prefix), directory, lambda file: file.startswith(name) or file.endswith(_COMPANIONS))
    return os.path.join(directory, storage.basename(path))


def _copy_files(source: str, directory: str, wanted: Callable[[str], bool] = lambda name: True) -> None:
    for name in storage.list_directory(source):
        file = storage.join(source, name)
        if wanted(name) and not storage.is_directory(file):
            storage.copy_to_local(file, os.path.join(directory, name))
