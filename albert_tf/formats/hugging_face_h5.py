"""tf_model.h5: the weights that transformers' TensorFlow classes wrote, which transformers 5 no longer has."""

from __future__ import annotations

import numpy as np

from albert_tf.errors import InputError


def read_h5(path: str) -> dict[str, np.ndarray]:
    """Path inside the file (`hugging_face_names.from_keras` tells what it names) to array, for every data set.

    Raises:
        InputError: the file cannot be read.
    """
    import h5py

    tensors: dict[str, np.ndarray] = {}

    def keep(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            tensors[name] = np.asarray(item)

    try:
        with h5py.File(path, "r") as file:
            file.visititems(keep)
    except (OSError, RuntimeError, KeyError) as error:
        raise InputError(f"cannot read {path}: {str(error).splitlines()[0]}") from error
    return tensors
