"""The vocabulary as Hugging Face's tokenizers open it: spiece.model or vocab.txt with tokenizer_config.json."""

from __future__ import annotations

from typing import Any

from albert_tf import tokenizer, wordpiece
from albert_tf.errors import InputError
from albert_tf.formats.checkpoint import Vocabulary

VOCABULARY_FILES = (tokenizer.SENTENCEPIECE_FILE, tokenizer.WORDPIECE_FILE, tokenizer.SETTINGS_FILE)

_SPECIAL_PIECES = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
_RELEASED_IDS = {"pad": 0, "cls": 2, "sep": 3}


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
    is_wordpiece = vocabulary.is_wordpiece
    pieces = wordpiece.SPECIAL_PIECES if is_wordpiece else _SPECIAL_PIECES
    others: dict[str, Any] = {
        "tokenizer_class": "BertTokenizer" if is_wordpiece else "AlbertTokenizer",
        "model_max_length": longest,
        **{f"{role}_token": piece for role, piece in zip(("pad", "unk", "cls", "sep", "mask"), pieces)},
    }
    if is_wordpiece:
        others["strip_accents"] = False if vocabulary.keep_accents else None
    vocabulary.write(directory, others=others)
