"""What the tests of the tokenizers share: small vocabularies, odd strings, real lines."""

from __future__ import annotations

import functools
import gzip
import io
import itertools
import pathlib
import random
import tempfile

import sentencepiece
from hypothesis import strategies

SPECIALS = ["[CLS]", "[SEP]", "[MASK]"]
SYMBOLS = ["(", ")", '"', "-", ".", "–", "£", "€"]
WORDPIECES = (
    "[PAD] [unused1] [UNK] [CLS] [SEP] [MASK] the cafe ##s ##ing sing a b ##b , . - ! 中 文 "
    "ό οδος Σ ##Σ σ ##ς strasse é 2019"
).split()


def train_model(lines: list[str], size: int, **settings: object) -> bytes:
    """A unigram model by the released recipe, or with other settings."""
    recipe = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1}
    symbols = {"control_symbols": SPECIALS, "user_defined_symbols": SYMBOLS}
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=size,
        num_threads=2,
        minloglevel=2,
        **{**recipe, **symbols, **settings},
    )
    return model.getvalue()


@functools.cache
def number_lines() -> list[str]:
    """Text full of numbers with commas, so that pieces such as "2019," and "345," come about."""
    rng = random.Random(5)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["the", "house", "(red)", "[old]", *("".join(rng.choices(letters, k=5)) for _ in range(60))]
    numbers = ["2019,", "12,345", "7,8", "1,000,000", "1999,", "345,", "2,", "3,4,5,"]

    def word() -> str:
        made = "".join(rng.choices(letters, k=rng.randrange(3, 7)))
        return rng.choice([rng.choice(numbers), rng.choice(words), made + rng.choice(["345,", "7,"])])

    return [" ".join(word() for _ in range(12)) for _ in range(1000)]


@functools.cache
def number_model() -> str:
    """Path of a model trained on `number_lines`, with "<digit>," pieces at the start and inside of words."""
    return _in_a_file("numbers.model", train_model(number_lines(), 200, split_by_number=False))


@functools.cache
def alphabet_model() -> str:
    """Path of a model that knows Latin with accents, Greek, Turkish letters and signs of other scripts."""
    rng = random.Random(6)
    letters = "abcdefghijklmnopqrstuvwxyzéüßαβγδσςόiıİIſﬁ中文の한Ⅷ½٣😀,.-12"
    lines = ["".join(rng.choice(letters) for _ in range(rng.randrange(1, 9))) for _ in range(4000)]
    return _in_a_file("alphabet.model", train_model(lines, 300, character_coverage=1.0))


@functools.cache
def unusual_model() -> str:
    """Path of a model that keeps spaces, begins no text with one, and has symbols of several characters."""
    settings = {"remove_extra_whitespaces": False, "add_dummy_prefix": False, "hard_vocab_limit": False}
    symbols = ["ab", "abc", "ﬁ", "a\u0301", ". ", "2,", *SYMBOLS]
    lines = ["a b c ab abc cab é 12, 中"] * 50
    return _in_a_file("unusual.model", train_model(lines, 60, user_defined_symbols=symbols, **settings))


@functools.cache
def wordpiece_vocabulary() -> str:
    """Path of a small vocab.txt."""
    return _in_a_file("vocab.txt", "\n".join(WORDPIECES).encode() + b"\n")


def _in_a_file(name: str, data: bytes) -> str:
    path = pathlib.Path(tempfile.mkdtemp()) / name
    path.write_bytes(data)
    return str(path)


def odd_strings() -> list[str]:
    """More than 200 strings of the kinds that implementations disagree on."""
    seeds = [
        "",
        " ",
        "\t\n",
        "CAFÉ cafe\u0301 Straße STRASSE ΟΔΟΣ ὈΔΥΣΣΕΎΣ Σ σΣ ΣΑ Α.Σ ΑΣ. Α\u0301Σ ΑΣ\u0301Α",
        "İstanbul ısı I\u0307 ǅ ŉ ﬁ ﬀ Ⅷ ½ ① ² ㎏ ㍿ ½,",
        "中文字元 日本語テキスト 한국어 텍스트 각 ｆｕｌｌ　ｗｉｄｔｈ",
        "😀 👩\u200d👩\u200d👧 🇩🇪 ❤\ufe0f e\u20dd",
        "a\xa0b\u2009c\u3000d\u200be\ufefff\xadg\u2028h\u2029i\x85j\x1ck\x0bl\x0cm\x00n",
        "[CLS] [SEP] [MASK] <pad> <unk> ##s ▁the ▁",
        "12,345, 2019, 7,8 1,2,3, ٣, ², 3 , a, ,",
        "( ) \" - . – £ € “quotes” ‘single’ `` '' …",
        "\u0344 \u0345 \u037e \u0387 \u1fef \u212b \u2126 \uf900 \U0002f800 \U0001d165\U0001d16d \u1b44\u302e\u0323",
        "\ufdd0 \uffff \U0001fffe \ue000 \U0010fffd \u0378 \ufffd \U000e0001",
        "i" * 201 + " " + "é" * 200 + " " + "中" * 201,
    ]
    pairs = [a[:9] + b[-9:] for a, b in itertools.permutations(seeds, 2)]
    return seeds + [word for seed in seeds for word in seed.split(" ")] + pairs


def odd_text() -> strategies.SearchStrategy[str]:
    """Any Unicode text, with the characters on which rules hang drawn more often."""
    marks = "\u0345\u0307\u0301\u0327\u0323\u302e\u1b44\U0001d165\u034f"
    spaces = " \t\x1c\x85\xa0\u3000\u200b\x00"
    hard = marks + spaces + "aAΣσςΑ.'·iİIıſ0123,٣²①[]CLS▁#中한ﬁ豈\ufdd0"
    valid = strategies.characters(exclude_categories=["Cs"])
    return strategies.text(strategies.one_of(strategies.sampled_from(hard), valid), max_size=40)


def corpus_lines(shared: pathlib.Path, count: int) -> list[str]:
    """Real lines, as many of each language: English, German, Japanese, simplified and traditional Chinese."""
    files = sorted(shared.glob("data/corpus_*/*.gz"))
    files = [file for file in files if "corpus_en" not in str(file)] + [
        file for file in files if "corpus_en" in str(file)
    ][:4]
    lines: list[str] = []
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") as text:
            real = (line for line in text if line.strip())
            lines += itertools.islice(real, 20, 20 + -(-count // len(files)))
    return lines
