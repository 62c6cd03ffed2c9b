"""The model configurations that come with the package, found by name: `albert_base_v2`, `albert_tiny`, …"""

from __future__ import annotations

import os
import pathlib

from albert_tf.errors import InputError

_PACKAGE = pathlib.Path(__file__).resolve().parent
# A wheel carries the files inside the package; a checkout and an editable install have them beside it.
_DIRECTORIES = (_PACKAGE / "configs", _PACKAGE.parent / "configs")


def config_directory() -> pathlib.Path:
    """The folder of the configurations that come with the package."""
    return next(directory for directory in _DIRECTORIES if directory.is_dir())


def config_names() -> list[str]:
    """The names `config_path` knows, sorted."""
    return sorted(path.stem for path in config_directory().glob("*.json"))


def config_path(name_or_file: str | os.PathLike[str], flag: str = "albert_config_file") -> str:
    """The file of a configuration given as a file name or as the name of one that comes with the package.

    Args:
        name_or_file: an existing file, or a name such as `albert_base_v2`; `configs/albert_base_v2.json` is
            understood too where the current directory has no such file.
        flag: the flag the name came from, for the message.

    Raises:
        InputError: it is neither.
    """
    given = os.fspath(name_or_file)
    if os.path.isfile(given):
        return given
    path = pathlib.PurePath(given)
    is_name = given in (path.stem, str(pathlib.PurePath("configs", f"{path.stem}.json")))
    if is_name and path.stem in config_names():
        return str(config_directory() / f"{path.stem}.json")
    raise InputError(
        f"--{flag}: {given!r} is neither a file nor one of the configurations that come with albert_tf "
        f"({', '.join(config_names())})"
    )


def recipe_path(config_file: str) -> str | None:
    """The flag file that pre-trains the configuration of this file, of those that come with the package."""
    path = pathlib.Path(config_file)
    recipe = config_directory() / "recipes" / f"{path.stem}.flags"
    return str(recipe) if path.parent == config_directory() and recipe.is_file() else None
