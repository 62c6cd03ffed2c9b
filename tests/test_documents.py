"""Reading of text, the survey before the work, and the list of the work."""

from __future__ import annotations

import gzip
import importlib.util
import sys

import pytest

from albert_tf.errors import InputError
from data_prep import documents
from data_prep.documents import open_text, read_documents, read_lines
from data_prep.random_draws import held_out_draw
from data_prep.sentences import SentenceSplitter, split_cjk
from data_prep.survey import survey_file
from data_prep.work_list import default_num_shards, make_work_list


def _documents(path, start=0, end=None, errors="strict"):
    with open_text(str(path)) as file:
        return list(read_documents(file, str(path), 0, start, end, errors))


def _survey(path, grain=1, errors="strict"):
    return survey_file(str(path), 0, grain=grain, errors=errors, seed=1)


def test_blank_lines_end_documents(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbf\n\n one \r\ntwo\n\t \n\xe3\x80\x80\nthree\n\n\n four")
    assert [document.lines for document in _documents(path)] == [["one", "two"], ["three"], ["four"]]


def test_only_line_feeds_end_lines(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one\x0btwo\x85three\u2028four\n", encoding="utf-8")
    assert [document.lines for document in _documents(path)] == [["one\x0btwo\x85three\u2028four"]]


def test_gzip_is_told_by_content(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(gzip.compress(b"one\n\ntwo\n") + gzip.compress(b"three\n"))
    assert [document.lines for document in _documents(path)] == [["one"], ["two", "three"]]


def test_cut_gzip_is_named(tmp_path):
    path = tmp_path / "a.gz"
    data = gzip.compress(b"".join(b"line %d\n" % i for i in range(1000)))
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match=r"a\.gz is a damaged or cut gzip file"):
        _documents(path)


@pytest.mark.parametrize("packed", [False, True])
def test_bytes_that_are_not_utf8(tmp_path, packed):
    path = tmp_path / "latin.txt"
    data = b"fine\n\nfine\n\ncaf\xe9 noir\n"
    path.write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(InputError, match=r"latin\.txt, line 5: byte 0xe9 at position 4 .*--errors=replace"):
        _documents(path)
    assert _documents(path, errors="replace")[2].lines == ["caf\ufffd noir"]


def test_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.txt"):
        open_text(str(tmp_path / "none.txt"))


@pytest.mark.parametrize("character", ["a", "é", "語", "\U0001f600"])
@pytest.mark.parametrize("blank_every", [0, 10])
def test_long_lines_are_cut_without_loss(tmp_path, monkeypatch, character, blank_every):
    monkeypatch.setattr(documents, "MAX_LINE_BYTES", 64)
    text = "".join(" " if blank_every and i % blank_every == 9 else character for i in range(500))
    path = tmp_path / "long.txt"
    path.write_text(text + "\nshort\n", encoding="utf-8")
    with open_text(str(path)) as file:
        lines = list(read_lines(file, str(path), 0, None, "strict"))
    assert len(lines) > 8
    assert max(size for _, _, size in lines) <= 64
    assert "".join(line.replace(" ", "") for _, line, _ in lines) == text.replace(" ", "") + "short"
    if blank_every:
        assert {word for _, line, _ in lines for word in line.split()} == {character * 9, "short"}
    # Reading from any line gives the same lines.
    with open_text(str(path)) as file:
        for i in (1, 3, len(lines) - 1):
            assert list(read_lines(file, str(path), lines[i][0], None, "strict")) == lines[i:]


def test_long_documents_are_cut_at_a_line(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "MAX_DOCUMENT_BYTES", 50)
    path = tmp_path / "a.txt"
    lines = [f"line {i:03d}" for i in range(40)]
    path.write_text("\n".join(lines), encoding="utf-8")
    found = _documents(path)
    assert [line for document in found for line in document.lines] == lines
    assert max(document.size for document in found) < 60
    survey = _survey(path)
    assert survey.documents == len(found)
    assert list(survey.cuts) == [document.offset for document in found]


def test_survey_counts_and_cuts(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("\n".join(f"document {i}\nhas two lines\n" for i in range(100)), encoding="utf-8")
    whole = _documents(path)
    survey = _survey(path, grain=200)
    assert (survey.documents, survey.lines, survey.text_bytes) == (100, 200, sum(d.size for d in whole))
    assert survey.lowest_draw == min(held_out_draw(1, 0, d.offset) for d in whole)
    assert all(b - a >= 200 for a, b in zip(survey.cuts, survey.cuts[1:]))
    parts = []
    for start, end in zip(survey.cuts, (*survey.cuts[1:], survey.end)):
        parts += _documents(path, start, end)
    assert parts == whole


@pytest.mark.parametrize("num_shards", [1, 3, 7, 1000])
def test_work_list_covers_the_text_once(tmp_path, num_shards):
    surveys = []
    for index, count in enumerate([50, 1, 200]):
        path = tmp_path / f"{index}.txt"
        path.write_text("".join(f"text {i}\n\n" for i in range(count)), encoding="utf-8")
        surveys.append(survey_file(str(path), index, grain=1, errors="strict", seed=1))
    shards = make_work_list(surveys, num_shards)
    assert [shard.index for shard in shards] == list(range(len(shards)))
    assert len(shards) == min(num_shards, 251)
    assert all(shard.ranges for shard in shards)
    ranges = [part for shard in shards for part in shard.ranges]
    documents_found = [d for part in ranges for d in _documents(part.path, part.start, part.end)]
    assert len(documents_found) == 251
    if num_shards < 10:
        sizes = [shard.size for shard in shards]
        assert max(sizes) < 1.2 * min(sizes)


def test_default_number_of_shards_follows_the_text():
    mib = 1 << 20
    sizes = [1, mib, mib + 1, 16 * mib, 40 * mib, 64 * mib, 128 * mib, 1 << 40]
    assert [default_num_shards(size) for size in sizes] == [1, 1, 2, 16, 16, 16, 32, 1024]


def test_cjk_sentences():
    assert split_cjk("今天天气很好。我们去公园吧！“好啊。”他说？") == [
        "今天天气很好。",
        "我们去公园吧！",
        "“好啊。”",
        "他说？",
    ]
    assert split_cjk("「はい。」と言った。版は1.5です") == ["「はい。」", "と言った。", "版は1.5です"]
    assert split_cjk("Plain text. Stays whole!") == ["Plain text. Stays whole!"]
    assert split_cjk("") == []


def test_sentences_of_paragraphs():
    if importlib.util.find_spec("tensorflow_text") is None:
        pytest.skip("tensorflow-text is not installed")
    paragraphs = ["It rained. We stayed at home! Did you?", "", "No end here", "今天很好。Tom came. 明天见！"]
    assert SentenceSplitter().split(paragraphs) == [
        ["It rained.", "We stayed at home!", "Did you?"],
        [],
        ["No end here"],
        ["今天很好。", "Tom came.", "明天见！"],
    ]
    assert SentenceSplitter().split([]) == []


def test_splitting_without_tensorflow_text_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)
    with pytest.raises(InputError, match="--split_sentences needs tensorflow-text"):
        SentenceSplitter()
