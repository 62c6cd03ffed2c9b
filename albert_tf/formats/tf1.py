"""Reads TF1 checkpoints: the archives of 2019, their fine-tuned successors, and those of BERT."""

from __future__ import annotations

import os

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.formats import archives, families, tf1_location
from albert_tf.formats.checkpoint import Checkpoint, find_vocabulary
from albert_tf.formats.head_names import head_from_weights
from albert_tf.formats.optimizer_slots import slots_among
from albert_tf.formats.tensor_bundle import OBJECT_GRAPH, TensorBundle
from albert_tf.formats.tf1_writing import write
from albert_tf.head_config import HeadConfig

__all__ = ["read", "read_bundle", "write"]
FORM = "TF1 checkpoint"


def read(path: str | os.PathLike[str], config: AlbertConfig | None = None) -> Checkpoint:
    """Reads a name-based checkpoint, optimizer slots left out.

    Args:
        path: its prefix, one of its files, a directory with one (model.ckpt-best.*, 30k-clean.model,
            albert_config.json in the released archives), or a .tar.gz, .tgz or .tar of such a directory.
        config: the sizes; by default those of the JSON beside it.

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
    notes = (*found_notes, *checkpoint.notes)
    if config is None:
        config_file, values, config_notes = tf1_location.find_config(directory)
        notes = (*notes, *config_notes)
        config = families.config_from(values, is_bert, config_file) if config_file else None
    return checkpoint.replace(
        config=config,
        head=HeadConfig.read(directory) or checkpoint.head,
        vocabulary=find_vocabulary(directory or "."),
        notes=notes,
    )


def read_bundle(bundle: TensorBundle, path: str, form: str) -> tuple[Checkpoint, bool]:
    """Reads the variables of a name-based file under their released names.

    Args:
        bundle: the opened file.
        path, form: for the checkpoint.

    Returns:
        A checkpoint without config and vocabulary; and whether it is a BERT.

    Raises:
        InputError: the other ALBERT family, or a file with values that is missing or damaged.
    """
    slots = slots_among(bundle.shapes)
    variables = set(bundle.shapes).difference(slots)
    texts = {name for name in variables if not bundle.is_number(name)}
    names = sorted(variables - texts)
    translation = families.translate(names, path)
    values, notes = bundle.read(names)
    weights = {translation.names[name]: value for name, value in values.items()}
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
