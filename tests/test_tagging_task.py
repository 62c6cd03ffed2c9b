"""Files with one word and its tag a line."""

from __future__ import annotations

import pytest

from albert_tf.errors import InputError
from albert_tf.tasks.labels import find_labels
from albert_tf.tasks.tagging import CONLL, tagging_task

CONLL_2003 = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O
German JJ B-NP B-MISC

Peter NNP B-NP B-PER
Blackburn NNP I-NP I-PER

-DOCSTART- -X- -X- O

# NN I-NP O
1 CD I-NP O
"""


@pytest.fixture
def read(tmp_path):
    def reading(content, task=CONLL):
        path = tmp_path / "train.txt"
        path.write_bytes(content.encode("utf-8"))
        return task.read(str(path))

    return reading


@pytest.mark.parametrize("content", [CONLL_2003, CONLL_2003.replace("\n", "\r\n"), CONLL_2003.replace(" ", "\t")])
def test_four_columns(read, content):
    examples = read(content)
    assert [(example.words, example.tags) for example in examples] == [
        (("EU", "rejects", "German"), ("B-ORG", "O", "B-MISC")),
        (("Peter", "Blackburn"), ("B-PER", "I-PER")),
        (("#", "1"), ("O", "O")),
    ]
    assert [example.id for example in examples] == ["0", "1", "2"]
    assert [example.place.split(", ")[-1] for example in examples] == ["line 3", "line 7", "line 12"]
    assert find_labels(CONLL, examples) == ("B-MISC", "B-ORG", "B-PER", "I-PER", "O")


def test_columns_can_be_chosen(read):
    (first, *_) = read(CONLL_2003, tagging_task(tag_column=1))
    assert first.tags == ("NNP", "VBZ", "JJ")
    (first, *_) = read(CONLL_2003, tagging_task(word_column=1, tag_column=2))
    assert (first.words, first.tags) == (("NNP", "VBZ", "JJ"), ("B-NP", "B-VP", "B-NP"))
    (first, *_) = read(CONLL_2003, tagging_task(tag_column=None))
    assert (first.words, first.tags) == (("EU", "rejects", "German"), None)


@pytest.mark.parametrize(
    "tags",
    [("I-PER", "I-PER", "B-PER"), ("B-PER", "E-PER", "S-PER"), ("B-PER", "L-PER", "U-PER"), ("NOUN", "VERB", "X")],
)
def test_tags_of_every_scheme_stay_as_they_are(read, tags):
    (example,) = read("".join(f"w{number} {tag}\n" for number, tag in enumerate(tags)))
    assert example.tags == tags


def test_words_alone_are_unlabelled(read):
    examples = read("The\ncat\n\n\n   \nsleeps\n")
    assert [(example.words, example.tags) for example in examples] == [(("The", "cat"), None), (("sleeps",), None)]


def test_comments_are_no_words_and_words_are_no_comments(read):
    examples = read("# sent_id = 4\n# text = The cat\nThe\tDET\ncat\tNOUN\n\n#hashtag\tX\n#\tSYM\n")
    assert [example.words for example in examples] == [("The", "cat"), ("#hashtag", "#")]


def test_a_tab_separates_where_there_is_one_so_that_a_word_may_hold_a_space(read):
    (example,) = read("New York\tB-LOC\nis\tO\n")
    assert example.words == ("New York", "is")


def test_a_no_break_space_is_part_of_a_word(read):
    (example,) = read("10\u00a0000 NUM\n")
    assert example.words == ("10\u00a0000",)


@pytest.mark.parametrize(
    ("content", "task", "message"),
    [
        ("", CONLL, "is empty"),
        ("-DOCSTART- O\n\n", CONLL, "has no example"),
        (" \n", CONLL, "has no example"),
        ("EU B-ORG\nrejects\n", CONLL, r"line 2 has 1 column\(s\), and the first word has 2"),
        ("EU B-ORG\n\nGerman JJ B-MISC\n", CONLL, r"line 3 has 3 column\(s\)"),
        ("EU\t\n", CONLL, "line 1: the tag in column -1 is empty"),
        ("\tO\n", CONLL, "line 1: the word in column 0 is empty"),
        ("EU B-ORG\n", tagging_task(tag_column=3), r"line 1 has 2 column\(s\), so there is no column 3 for the tag"),
        ("EU B-ORG\n", tagging_task(word_column=-3), "there is no column -3 for the word"),
    ],
)  # fmt: skip
def test_bad_lines_are_told_with_file_and_line(read, content, task, message):
    with pytest.raises(InputError, match=message) as caught:
        read(content, task)
    assert "train.txt" in str(caught.value)


def test_a_file_without_tags_cannot_be_trained_on(read):
    with pytest.raises(InputError, match=r"has 0 label\(s\)"):
        find_labels(CONLL, read("The\ncat\n"))


def test_every_word_has_its_line(read):
    lines = [[place.rsplit(" ", 1)[1] for place in example.word_places] for example in read(CONLL_2003)]
    assert lines == [["3", "4", "5"], ["7", "8"], ["12", "13"]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"tokens": ["a"], "tags": ["O"]}\n', "is JSON, and words and tags need one word a line"),
        ('[\n{"tokens": ["a"]}\n]\n', "is JSON, and words and tags need one word a line"),
        ("a fine film\tgood\na dull film\tbad\n", "has texts of several words in its first column"),
        ("\nword\ttag\nEU\tB-ORG\n", "line 2: word, tag seem to be names of columns"),
        ("Token pos NER\nEU NNP B-ORG\n", "line 1: Token, pos, NER seem to be names of columns"),
    ],
)
def test_what_is_plainly_another_file_is_refused(read, content, message):
    with pytest.raises(InputError, match=message):
        read(content)


@pytest.mark.parametrize("content", ["[ O\n] O\n\n", "{ O\n", '["a" O\n', "word O\n", "[1] O\n"])
def test_brackets_are_words(read, content):
    assert read(content)[0].words[0] == content.split()[0]


def test_line_ends_of_old_macs(read):
    assert read("EU B-ORG\rno O\r\rx O\r") == read("EU B-ORG\nno O\n\nx O\n")
