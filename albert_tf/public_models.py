"""The published ALBERTs by name: where their archives are, and a cache of those that were asked for."""

from __future__ import annotations

import os

from albert_tf.download import fetch

BASE_URL = "https://storage.googleapis.com/albert_models"
URL_VARIABLE = "ALBERT_TF_MODELS_URL"
CACHE_VARIABLE = "ALBERT_TF_CACHE"


# As in the README of google-research/albert: English versions 1 and 2, and the Chinese models of December 2019. Each is
# an archive <name>.tar.gz below `BASE_URL`. No checksums of them are published: the server's own count.
_NAMES = tuple(
    f"albert_{size}_{version}" for version in ("v1", "v2", "zh") for size in ("base", "large", "xlarge", "xxlarge")
)


def public_names() -> list[str]:
    """The names `resolve` knows."""
    return list(_NAMES)


def cache_directory() -> str:
    """Where archives are kept: the environment's ALBERT_TF_CACHE, or else ~/.cache/albert_tf."""
    return os.path.expanduser(os.environ.get(CACHE_VARIABLE) or os.path.join("~", ".cache", "albert_tf"))


def resolve(
    name_or_path: str | os.PathLike[str],
    *,
    cache: str | os.PathLike[str] | None = None,
    base_url: str | None = None,
) -> str:
    """The path of a model that is given by path or by public name.

    Args:
        name_or_path: a path, which wins where it exists (also as the prefix of a TF1 checkpoint); or one of
            `public_names`, in upper or lower case, with - or _. Its archive is downloaded if the cache has none.
        cache: where archives are kept; None is `cache_directory`.
        base_url: the folder of the archives on the web; None is the environment's ALBERT_TF_MODELS_URL (a mirror), or
            else where they are published.

    Returns:
        an existing path, an archive, or, for what is neither, the argument as it is: its reader says what is wrong.

    Raises:
        InputError: the archive cannot be downloaded.
    """
    given = os.fspath(name_or_path)
    name = given.lower().replace("-", "_")
    if name not in _NAMES or os.path.exists(given) or os.path.exists(f"{given}.index"):
        return given
    base_url = base_url or os.environ.get(URL_VARIABLE) or BASE_URL
    return fetch(f"{base_url.rstrip('/')}/{name}.tar.gz", cache or cache_directory())
