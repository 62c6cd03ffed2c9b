"""Any path a person may have to a `Checkpoint`: what is there is told by looking, never by its name alone."""

from __future__ import annotations

import os
import tarfile
import tempfile
from collections.abc import Callable

from albert_tf import files, public_models, storage
from albert_tf.config import CONFIG_FILE, AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats import archives, hugging_face, portable, tf1, tf1_location, tf_hub, training_run
from albert_tf.formats.checkpoint import Checkpoint
from albert_tf.formats.hugging_face_tensors import FILE_NAMES, INDEX_END

_HUGGING_FACE_NAMES = {file + end for file in FILE_NAMES for end in ("", INDEX_END)}
_HUGGING_FACE_ENDS = tuple({name[name.index(".") :] for name in _HUGGING_FACE_NAMES})
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
        config: the sizes, for a source that does not tell them (a bare TF1 prefix), or not all of them (a TF-Hub
            module). What the source tells stays in the checkpoint's config, so that the two can be compared.

    Raises:
        InputError: nothing is there, it is none of these, or it is damaged; the sentence says what was looked for.
    """
    given = os.fspath(path)
    if not given:
        raise InputError(f"the path of the checkpoint is empty: give {_KNOWN}, or the name of a public model")
    if storage.is_remote(given):
        with tempfile.TemporaryDirectory() as directory:
            local, place = _download(given, directory)
            with archives.named_after(place, directory):
                checkpoint = _read_local(local, config)
            notes = tuple(note.replace(directory, place) for note in checkpoint.notes)
            checkpoint = checkpoint.replace(path=given, notes=notes)
    else:
        checkpoint = _read_local(public_models.resolve(given), config)
    return (
        checkpoint if checkpoint.config or config is None else checkpoint.replace(config=config, config_is_told=False)
    )


def _read_local(path: str, config: AlbertConfig | None) -> Checkpoint:
    files.recover_directory(path)
    if os.path.isdir(path):
        return _read_directory(path, config)
    if archives.is_archive(path):
        return tf_hub.read(path, config) if _holds_saved_model(path) else tf1.read(path, config)
    if path.endswith(_HUGGING_FACE_ENDS) and os.path.isfile(path):
        return hugging_face.read(path)
    if os.path.isfile(f"{path}.index") or tf1_location.without_file_end(path) != path:
        return tf1.read(path, config)
    if os.path.exists(path):
        raise InputError(f"{path} holds no weights that are known here: give {_KNOWN}")
    raise InputError(
        f"{path} holds no weights: there is no such file or directory, and it is not one of the public models "
        f"{', '.join(public_models.public_names())}"
    )


def _read_directory(path: str, config: AlbertConfig | None) -> Checkpoint:
    try:
        names = set(os.listdir(path))
    except OSError as error:
        raise InputError(f"cannot read the directory {path}: {error.strerror}") from error
    if CONFIG_FILE in names and portable.WEIGHTS_FILE in names:
        return portable.read(path)
    if "saved_model.pb" in names:
        return tf_hub.read(path, config)
    if names & _HUGGING_FACE_NAMES:
        return hugging_face.read(path)
    if training_run.chosen(path) is not None:
        return training_run.read(path)
    if any(name.endswith(".index") for name in names):
        return tf1.read(path, config)
    raise InputError(f"{path} holds no weights: none of its {len(names)} files is of a form known here; give {_KNOWN}")


def _holds_saved_model(archive: str) -> bool:
    try:
        with tarfile.open(archive) as tar:
            return any(os.path.basename(member.name) == "saved_model.pb" for member in tar)
    except (tarfile.TarError, OSError, EOFError):
        return False  # the reader of archives says what is wrong


def _download(path: str, directory: str) -> tuple[str, str]:
    """Copies what an address names to a local directory.

    Returns:
        The path of the copy, and the address that `directory` stands for.
    """
    checkpoint = training_run.chosen(path)
    if checkpoint is not None:
        return _download_run(path.rstrip("/"), checkpoint.rstrip("/"), directory)
    if storage.is_directory(path):
        _copy_files(path, directory)
        for part in _SAVED_MODEL_PARTS:
            if storage.is_directory(storage.join(path, part)):
                os.makedirs(os.path.join(directory, part))
                _copy_files(storage.join(path, part), os.path.join(directory, part))
        return directory, path.rstrip("/")
    place, name = storage.dirname(path), storage.basename(path)
    prefix, shards = tf1_location.without_file_end(name), _shards(path)

    def is_wanted(file: str) -> bool:
        ours = file == name or file in shards or tf1_location.without_file_end(file) == prefix
        return ours or file.endswith(_COMPANIONS)

    _copy_files(place, directory, is_wanted)
    return os.path.join(directory, name), place


def _download_run(path: str, checkpoint: str, directory: str) -> tuple[str, str]:
    """Copies one checkpoint of a run, and the files in the run's directory, to the same places below a local one."""
    place = training_run.output_dir_of(checkpoint)
    local = directory + checkpoint[len(place) :]
    os.makedirs(local, exist_ok=True)
    _copy_files(place, directory)
    if local != directory:
        _copy_files(checkpoint, local)
    return directory + path[len(place) :], place


def _shards(path: str) -> set[str]:
    """The files that the index of a sharded Hugging Face model names; its reader says what is wrong with it."""
    if not path.endswith(INDEX_END) or not storage.exists(path):
        return set()
    values = storage.read_json(path)
    weight_map = values.get("weight_map") if isinstance(values, dict) else None
    return set(map(str, weight_map.values())) if isinstance(weight_map, dict) else set()


def _copy_files(source: str, directory: str, wanted: Callable[[str], bool] = lambda name: True) -> None:
    for name in storage.list_directory(source):
        file = storage.join(source, name)
        if wanted(name) and not storage.is_directory(file):
            storage.copy_to_local(file, os.path.join(directory, name))
