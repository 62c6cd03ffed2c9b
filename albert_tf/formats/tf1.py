"""Reads TF1 checkpoints: the archives of 2019, their fine-tuned successors, and those of BERT."""

from __future__ import annotations

import os
from collections.abc import Container

from albert_tf import files
from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats import archives, families, tf1_location
from albert_tf.formats.checkpoint import Checkpoint, find_vocabulary
from albert_tf.formats.head_names import head_from_weights
from albert_tf.formats.optimizer_slots import slots_among
from albert_tf.formats.renaming import renamed
from albert_tf.formats.tensor_bundle import OBJECT_GRAPH, TensorBundle
from albert_tf.head_config import HeadConfig

FORM = "TF1 checkpoint"
_PROJECTION = "bert/encoder/embedding_hidden_mapping_in/kernel"


def read(path: str | os.PathLike[str], config: AlbertConfig | None = None) -> Checkpoint:
    """Reads a name-based checkpoint, optimizer slots left out.

    Args:
        path: its prefix, one of its files, a directory with one (model.ckpt-best.*, 30k-clean.model,
            albert_config.json in the released archives), or a .tar.gz, .tgz or .tar of such a directory.
        config: the sizes, where no JSON beside it tells them.

    Raises:
        InputError: nothing is there, a file is missing or damaged, it was saved from TensorFlow 2 objects, or it is
            of the other ALBERT family.
    """
    path = os.fspath(path)
    if archives.is_archive(path):
        with archives.unpacked(path) as directory:
            return _read_unpacked(directory, path, config)
    return _read_unpacked(path, path, config)


def _read_unpacked(location: str, path: str, config: AlbertConfig | None) -> Checkpoint:
    prefix, found_notes = tf1_location.find_prefix(location)
    bundle = TensorBundle(prefix)
    if bundle.is_object_based:
        raise InputError(
            f"{path} is an object-based checkpoint of TensorFlow 2 (it has {OBJECT_GRAPH}), not a TF1 checkpoint with "
            "the names of variables: give the SavedModel or the directory that its model was saved to"
        )
    checkpoint, is_bert = read_bundle(bundle, path, FORM)
    directory = os.path.dirname(prefix)
    found, config_notes = _find_config(directory, checkpoint.weights, is_bert, config)
    head = HeadConfig.read(directory)
    return checkpoint.replace(
        config=found,
        config_is_told=found is not config,
        head=head or checkpoint.head,
        head_is_told=head is not None,
        vocabulary=find_vocabulary(directory or "."),
        notes=(*found_notes, *checkpoint.notes, *config_notes),
    )


def _find_config(
    directory: str, names: Container[str], is_bert: bool, given: AlbertConfig | None
) -> tuple[AlbertConfig | None, tuple[str, ...]]:
    """The config beside the files, or else the given one; JSON that cannot be used is an error where none is given."""
    file, notes = tf1_location.find_config(directory)
    if file is None:
        return given, notes if given is None else ()
    try:
        return families.config_from(files.read_json(file), is_bert, file, _PROJECTION in names), ()
    except InputError as error:
        if given is None:
            raise
        reason = str(error).replace(file, os.path.basename(file))  # of an archive the file will be gone
        return given, (f"the given config was taken, for the one beside the weights cannot be: {reason}",)


def read_bundle(bundle: TensorBundle, path: str, form: str) -> tuple[Checkpoint, bool]:
    """Reads the variables of a name-based file under their released names.

    Args:
        bundle: the opened file.
        path, form: for the checkpoint.

    Returns:
        A checkpoint without config and vocabulary; and whether it is a BERT.

    Raises:
        InputError: the other ALBERT family, two names for one variable, or a file with values that is missing or
            damaged.
    """
    slots = slots_among(bundle.shapes)
    variables = set(bundle.shapes).difference(slots)
    texts = {name for name in variables if not bundle.is_number(name)}
    names = sorted(variables - texts)
    translation = families.translate(names, path)
    values, notes = bundle.read(names)
    weights = renamed(values, translation.names, path)
    checkpoint = Checkpoint(
        path=path,
        form=form,
        weights=weights,
        head=head_from_weights(weights),
        slots=slots,
        left_out=dict.fromkeys(sorted(texts), "it holds text"),
        notes=(*translation.notes, *notes),
    )
    return checkpoint, translation.is_bert
