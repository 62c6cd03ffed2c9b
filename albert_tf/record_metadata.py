"""metadata.json, which create_pretraining_data writes beside the records, as its readers get it."""

from __future__ import annotations

from typing import Any

from albert_tf import record_spec, storage
from albert_tf.errors import InputError

_OF_A_SHARD = {"file": str, "split": str, "records": int, "bytes": int}


def path_in(directory: str) -> str:
    """Where it is; "" is the current directory."""
    return storage.join(directory, record_spec.METADATA_FILE) if directory else record_spec.METADATA_FILE


def read(directory: str) -> dict[str, Any]:
    """The metadata of a directory, {} where there is none.

    Raises:
        InputError: the file cannot be read, or is something else.
    """
    path = path_in(directory)
    if not storage.exists(path):
        return {}
    metadata = storage.read_json(path)
    if not _is_metadata(metadata):
        raise InputError(
            f"{path} is not the metadata of this version's create_pretraining_data: prepare the data again"
        )
    return metadata  # type: ignore[no-any-return]


def _is_metadata(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("format") == record_spec.METADATA_FORMAT
        and isinstance(value.get("settings"), dict)
        and isinstance(value.get("shards"), list)
        and all(map(_is_shard, value["shards"]))
    )


def _is_shard(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(name), kind) for name, kind in _OF_A_SHARD.items())
