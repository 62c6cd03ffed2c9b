"""The vocabulary as Hugging Face's tokenizers open it: spiece.model or vocab.txt with tokenizer_config.json."""

from __future__ import annotations

import os
from typing import Any

from albert_tf import files, tokenizer, wordpiece
from albert_tf.errors import InputError
from albert_tf.formats.checkpoint import Vocabulary

VOCABULARY_FILES = (tokenizer.SENTENCEPIECE_FILE, tokenizer.WORDPIECE_FILE, tokenizer.SETTINGS_FILE)

_RELEASED_IDS = {"pad": 0, "cls": 2, "sep": 3}


def read_settings(directory: str) -> dict[str, Any]:
    """The clean-up that tokenizer_config.json tells; of the WordPiece class in its words."""
    settings = tokenizer.read_settings(directory)
    if settings.get("strip_accents") is False:
        settings.setdefault("keep_accents", True)
    return settings


def special_ids(vocabulary: Vocabulary | None) -> tuple[dict[str, int], tuple[str, ...]]:
    """The ids of the padding piece, [CLS] and [SEP], and a note where the released ones were taken for want of them."""
    if vocabulary is None:
        return _RELEASED_IDS, ()
    try:
        made = vocabulary.tokenizer()
    except InputError as error:
        return _RELEASED_IDS, (f"config.json has the released ids of <pad>, [CLS] and [SEP]: {error}",)
    return {"pad": made.pad_id, "cls": made.cls_id, "sep": made.sep_id}, ()


def write_vocabulary(vocabulary: Vocabulary, directory: str, longest: int) -> None:
    """Writes the file and tokenizer_config.json with the class that opens it and its special pieces.

    Args:
        vocabulary: what to write.
        directory: where.
        longest: the longest sequence of the model.
    """
    vocabulary.write(directory)
    is_wordpiece = vocabulary.name.endswith(".txt")
    pieces = wordpiece.SPECIAL_PIECES if is_wordpiece else ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
    values = {
        **tokenizer.read_settings(directory),
        "tokenizer_class": "BertTokenizer" if is_wordpiece else "AlbertTokenizer",
        "model_max_length": longest,
        **{f"{role}_token": piece for role, piece in zip(("pad", "unk", "cls", "sep", "mask"), pieces)},
    }
    if is_wordpiece:
        values["strip_accents"] = False if vocabulary.keep_accents else None
    files.write_json(os.path.join(directory, tokenizer.SETTINGS_FILE), values)
