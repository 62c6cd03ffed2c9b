"""albert_tf.predict: rows in, predictions out, for every head; what the objects for strings answer is the measure."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import albert_tf
from albert_tf import predict, storage, text_vectors
from albert_tf.answering import loading
from albert_tf.answering.answerer import BadInstance
from albert_tf.errors import InputError
from albert_tf.gap_filling import GapFiller, load
from albert_tf.scoring import columns, output
from albert_tf.scoring.columns import Given
from albert_tf.scoring.source import Source
from tests import answering_models
from tests.own_flags import refusal

LENGTHS = (3, 40, 0, 1, 12, 7, 90, 5, 2, 33, 8, 20)
TEXTS = [" ".join(random.Random(number).choices("abcdefg中é😀", k=count)) for number, count in enumerate(LENGTHS)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def model(directory):
    made: dict[str, str] = {}

    def get(name: str) -> str:
        if name not in made:
            write = answering_models.write_pretrained
            made[name] = (
                write(directory) if name == "pretrained" else answering_models.write_task_model(directory, name)
            )
        return made[name]

    return get


def write(path, content: str) -> str:
    path.write_text(content, encoding="utf-8")
    return f"--input={path}"


def run(model: str, given: str, output, *more: str) -> list[dict]:
    """The predictions of one run, read as JSON lines."""
    assert refusal(predict, f"--model={model}", given, f"--output={output}", "--batch_size=4", *more) == ""
    return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]


def test_a_text_a_line_to_labels(model, tmp_path):
    answers = run(model("classifier"), write(tmp_path / "a.txt", "\n".join(TEXTS) + "\n"), tmp_path / "a.jsonl")
    classifier = albert_tf.TextClassifier.from_pretrained(model("classifier"))
    expected = classifier.predict(TEXTS)
    assert len(answers) == len(expected)
    for answer, wanted, text in zip(answers, expected, TEXTS):
        assert list(answer) == ["label", "probability", "is_cut", "probabilities"]
        assert answer["label"] == wanted.label
        assert answer["probability"] == pytest.approx(wanted.probability, abs=1e-5)
        assert answer["probabilities"] == pytest.approx(dict(wanted.probabilities), abs=1e-5)
        assert answer["is_cut"] == (len(classifier.tokenizer.encode(text)) > 30)


def test_blocks_change_nothing(model, tmp_path):
    given = write(tmp_path / "a.txt", "\n".join(TEXTS))
    whole = run(model("classifier"), given, tmp_path / "a.jsonl")
    small = run(model("classifier"), given, tmp_path / "b.jsonl", "--rows_at_a_time=5")
    assert [answer["label"] for answer in whole] == [answer["label"] for answer in small]
    np.testing.assert_allclose([a["probability"] for a in whole], [a["probability"] for a in small], atol=1e-6)


def test_pairs_to_numbers(model, tmp_path):
    pairs = list(zip(TEXTS, reversed(TEXTS)))
    expected = [answer.label for answer in albert_tf.TextClassifier.from_pretrained(model("regression")).predict(pairs)]
    with_header = "label\tsentence2\tid\tsentence1\n" + "".join(
        f"9\t{b}\tr{i}\t{a}\n" for i, (a, b) in enumerate(pairs)
    )
    answers = run(model("regression"), write(tmp_path / "a.tsv", with_header), tmp_path / "a.jsonl")
    np.testing.assert_allclose([answer["value"] for answer in answers], expected, atol=1e-5)
    assert [answer["id"] for answer in answers] == [f"r{i}" for i in range(len(pairs))]
    bare = "".join(f"{a}\t{b}\n" for a, b in pairs if a or b)
    answers = run(model("regression"), write(tmp_path / "b.tsv", bare), tmp_path / "b.jsonl")
    np.testing.assert_allclose([answer["value"] for answer in answers], expected, atol=1e-5)
    swapped = "".join(f"{b}\tx\t{a}\n" for a, b in pairs)
    given = write(tmp_path / "c.tsv", swapped)
    answers = run(model("regression"), given, tmp_path / "c.jsonl", "--columns=text_a=2,text_b=0")
    np.testing.assert_allclose([answer["value"] for answer in answers], expected, atol=1e-5)


def test_several_labels_and_a_table_as_output(model, tmp_path):
    content = io.StringIO()
    csv.writer(content).writerows([["review", "stars"], *([text + '\n"', 1] for text in TEXTS)])
    given = write(tmp_path / "a.csv", content.getvalue())
    assert refusal(predict, f"--model={model('multi_label')}", given, f"--output={tmp_path / 'a.tsv'}") == ""
    header, *rows = [line.split("\t") for line in (tmp_path / "a.tsv").read_text(encoding="utf-8").splitlines()]
    assert header == ["label", "is_cut", "probabilities: p", "probabilities: q", "probabilities: r"]
    classifier = albert_tf.TextClassifier.from_pretrained(model("multi_label"))
    for row, wanted in zip(rows, classifier.predict([text + '\n"' for text in TEXTS])):
        assert json.loads(row[0]) == list(wanted.label)
        np.testing.assert_allclose([float(cell) for cell in row[2:]], list(wanted.probabilities.values()), atol=1e-5)
    assert len(rows) == len(TEXTS)


@pytest.mark.parametrize("name", ["span", "answerable_span"])
def test_questions(model, tmp_path, name):
    questions, contexts = ["what", "a b?", ""], ["  a b c " * 20, "中 é x", ""]
    lines = [json.dumps({"question": q, "context": c, "answers": []}) for q, c in zip(questions, contexts)]
    answers = run(model(name), write(tmp_path / "a.jsonl", "\n\n".join(lines)), tmp_path / "o.jsonl")
    expected = albert_tf.QuestionAnswerer.from_pretrained(model(name)).predict(questions, contexts)
    for answer, wanted, context in zip(answers, expected, contexts):
        assert (answer["answer"], answer["start"], answer["end"]) == (wanted.text, wanted.start, wanted.end)
        assert answer["start"] < 0 or context[answer["start"] : answer["end"]] == answer["answer"]
        assert answer["probability"] == pytest.approx(wanted.probability, abs=1e-5)
        assert answer.get("no_answer_probability") == pytest.approx(wanted.no_answer_probability, abs=1e-5)


def test_options(model, tmp_path):
    rows = [("a b c", "x _ y", ["a", "b c"]), ("", "x", ["d", "e", "f"]), ("c " * 50, "", ["a", ""])]
    lines = [json.dumps({"id": i, "article": p, "question": q, "options": o}) for i, (p, q, o) in enumerate(rows)]
    answers = run(model("multiple_choice"), write(tmp_path / "a.jsonl", "\n".join(lines)), tmp_path / "o.jsonl")
    expected = albert_tf.MultipleChoiceAnswerer.from_pretrained(model("multiple_choice")).predict(*zip(*rows))
    table = "passage\tquestion\toptions\n" + "".join(f"{p}\t{q}\t{json.dumps(o)}\n" for p, q, o in rows)
    assert [answer["id"] for answer in answers] == [0, 1, 2]
    again = run(model("multiple_choice"), write(tmp_path / "a.tsv", table), tmp_path / "p.jsonl")
    for answer, other, wanted in zip(answers, again, expected):
        assert (answer["label"], answer["option"]) == (wanted.label, wanted.choice)
        np.testing.assert_allclose(answer["probabilities"], wanted.probabilities, atol=1e-5)
        assert other == {key: value for key, value in answer.items() if key != "id"}


CHOICE_TABLES = {
    "letters.tsv": "question\tA\tB\tC\tanswer\nx _ y\ta\tb c\t\tB\nx\td\te\tf\tA\n",
    "numbers.csv": "id,Question,choice_2,choice_1,choice_3\n7,x _ y,b c,a,\n8,x,e,d,f\n",
    "keys.jsonl": '{"question": "x _ y", "option_a": "a", "option_b": "b c", "option_c": null}\n'
    '{"question": "x", "option_a": "d", "option_b": "e", "option_c": "f"}\n',
    "endings.tsv": 'query\tendings\nx _ y\t["a", "b c"]\nx\t["d", "e", "f"]\n',
    "no_header.tsv": 'x _ y\t["a", "b c"]\nx\t["d", "e", "f"]\n',
    "other.tsv": "left\tmiddle\tright\tasked\na\tb c\t\tx _ y\nd\te\tf\tx\n",
    "by_number.tsv": "a\tb c\t\tx _ y\nd\te\tf\tx\n",
}
CHOICE_COLUMNS = {
    "other.tsv": "question=asked,options=left,options=middle,options=right",
    "by_number.tsv": "options=0,options=1,options=2,question=3",
}


@pytest.mark.parametrize("name", CHOICE_TABLES)
def test_options_in_columns_of_their_own(model, tmp_path, name):
    columns = [f"--columns={CHOICE_COLUMNS[name]}"] if name in CHOICE_COLUMNS else []
    path = write(tmp_path / name, CHOICE_TABLES[name])
    answers = run(model("multiple_choice"), path, tmp_path / "o.jsonl", *columns)
    expected = albert_tf.MultipleChoiceAnswerer.from_pretrained(model("multiple_choice")).predict(
        ["", ""], ["x _ y", "x"], [["a", "b c"], ["d", "e", "f"]]
    )
    assert [(answer["label"], answer["option"]) for answer in answers] == [(w.label, w.choice) for w in expected]
    for answer, wanted in zip(answers, expected):
        np.testing.assert_allclose(answer["probabilities"], wanted.probabilities, atol=1e-5)


@pytest.mark.parametrize(
    "name, columns, table, usual",
    [
        ("classifier", {"text_column": "Review"}, "Review\tsentence\na\tb\n", {"text": "a"}),
        (
            "regression",
            {"text_column": "left", "text_b_column": "right"},
            "right\tleft\nb\ta\n",
            {"text_a": "a", "text_b": "b"},
        ),
        (
            "multiple_choice",
            {"choice_columns": ["one", "two"], "passage_column": "story"},
            "A\tB\ttwo\tone\tstory\nc\td\tb\ta\tx y\n",
            {"passage": "x y", "options": ["a", "b"]},
        ),
        (
            "multiple_choice",
            {"choice_columns": ["all"], "question_column": "asked"},
            'asked\tall\nx y\t["a", "b"]\n',
            {"question": "x y", "options": ["a", "b"]},
        ),
    ],
)
def test_the_columns_of_fine_tuning_are_known(model, tmp_path, name, columns, table, usual):
    own = tmp_path / "model"
    shutil.copytree(model(name), own)
    about = json.loads((own / "task.json").read_text())
    (own / "task.json").write_text(json.dumps({**about, "columns": columns}))
    answers = run(str(own), write(tmp_path / "a.tsv", table), tmp_path / "a.jsonl")
    assert answers == run(model(name), write(tmp_path / "b.jsonl", json.dumps(usual)), tmp_path / "o.jsonl")


def test_words(model, tmp_path):
    sentences = ["a b 中文 c", "", "x " * 60, "é"]
    answers = run(model("tagger"), write(tmp_path / "a.txt", "\n".join(sentences) + "\n"), tmp_path / "o.jsonl")
    lines = [json.dumps({"tokens": sentence.split()}) for sentence in sentences]
    again = run(model("tagger"), write(tmp_path / "a.jsonl", "\n".join(lines)), tmp_path / "p.jsonl")
    assert answers == again
    for answer, wanted in zip(answers, albert_tf.TokenTagger.from_pretrained(model("tagger")).predict(sentences)):
        assert answer["labels"] == [word.tag for word in wanted]
        assert answer["words"] == [word.word for word in wanted]
        np.testing.assert_allclose(answer["probabilities"], [word.probability for word in wanted], atol=1e-5)


def test_gaps(model, tmp_path):
    texts = ["a [MASK] c", "[MASK]", "[MASK] b [MASK] " * 3, "d e f g a b c [MASK]"]
    answers = run(model("pretrained"), write(tmp_path / "a.txt", "\n".join(texts)), tmp_path / "o.jsonl", "--top_k=3")
    one_by_one = GapFiller(*load(model("pretrained")), top_k=3, batch_size=1)
    for answer, text in zip(answers, texts):
        (gaps,) = one_by_one([text])
        assert answer["pieces"] == [[filling.piece for filling in fillings] for fillings in gaps]
        assert len(answer["pieces"]) == text.count("[MASK]")
        probabilities = [[filling.probability for filling in fillings] for fillings in gaps]
        np.testing.assert_allclose(answer["probabilities"], probabilities, rtol=1e-4)


def test_no_gap_and_gaps_behind_what_is_read(model, tmp_path):
    texts = ["no gap", "", "[MASK]" + " a" * 40 + " [MASK]"]
    answers = run(model("pretrained"), write(tmp_path / "a.txt", "\n".join(texts) + "\n"), tmp_path / "o.jsonl")
    assert [answer["gaps"] for answer in answers] == [0, 0, 1]
    assert [answer["positions"] for answer in answers] == [[], [], [1]]
    assert [answer["is_cut"] for answer in answers] == [False, False, True]
    assert [len(answer["pieces"]) for answer in answers] == [0, 0, 1]


COLUMNS = "-DOCSTART- -X- O\n\na N B-X\nb N I-X\nc V O\n\nd N O\n"


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
@pytest.mark.parametrize("separator", [" ", "\t"])
def test_columns_of_words_and_tags_are_no_sentences(model, tmp_path, caplog, name, separator):
    lines = COLUMNS.replace(" ", separator).splitlines()
    content = lines if name == "a.txt" else [json.dumps({"text": line}) for line in lines]
    assert len(run(model("tagger"), write(tmp_path / name, "\n".join(content)), tmp_path / "o.jsonl")) == len(lines)
    assert f"{tmp_path / name} looks like CoNLL columns, and each of its lines is read as a sentence" in caplog.text
    assert "run_finetuning --task=conll --do_predict --test_file" in caplog.text


@pytest.mark.parametrize("content", ["O\nO\nO\n", "a O\nb O\n", "a O\nb c O\nd O\n", "a O\nb c\nd O\n"])
def test_sentences_that_end_like_columns_are_not_warned_of(model, tmp_path, caplog, content):
    run(model("tagger"), write(tmp_path / "a.txt", content), tmp_path / "o.jsonl")
    assert "CoNLL" not in caplog.text


@pytest.mark.parametrize("name, pooling", [("pretrained", "pooled"), ("classifier", "pooled"), ("tagger", "mean")])
def test_vectors(model, tmp_path, caplog, name, pooling):
    given = write(tmp_path / "a.txt", "\n".join(TEXTS))
    output = tmp_path / "v.npy"
    more = [f"--pooling={pooling}"] if pooling != "pooled" else []
    assert refusal(predict, f"--model={model(name)}", given, f"--output={output}", "--rows_at_a_time=7", *more) == ""
    found = np.load(output)
    vectors = text_vectors.load(model(name), pooling)
    wanted = vectors(TEXTS)
    assert vectors.cut and f"{vectors.cut} of {len(TEXTS)} examples" in caplog.text
    assert found.shape == (len(TEXTS), 32) and found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_a_file_that_cannot_be_read_is_one_sentence(model, tmp_path, monkeypatch):
    open_binary = storage.open_binary

    def refused(path):
        if path.endswith("a.txt"):
            raise PermissionError(13, "Permission denied")
        return open_binary(path)

    given = write(tmp_path / "a.txt", "a\n")
    monkeypatch.setattr(storage, "open_binary", refused)
    assert (
        refusal(predict, f"--model={model('classifier')}", given)
        == f"cannot read {tmp_path / 'a.txt'}: Permission denied"
    )


@pytest.mark.parametrize(
    "name, file, content, message",
    [
        ("classifier", "a.txt", b"good\n\xff\n", "a.txt, line 2: the byte 0xff"),
        ("classifier", "a.jsonl", b'{"text": "x"}\n\n{"text": 3}\n', "a.jsonl, line 3: text is 3, but must be a text"),
        ("classifier", "a.jsonl", b'{"text": "x"}\n{"text": "\\ud800"}', "line 2: text has half of a surrogate"),
        ("classifier", "a.jsonl", b'{"id": "\\ud800", "text": "x"}', "a.jsonl, line 1: its id has half of a surrogate"),
        ("classifier", "a.jsonl", b'{"text": "x"}\n[1]\n', "a.jsonl, line 2 must be a JSON object"),
        ("classifier", "a.jsonl", b'{"text": "x"}\n{"text"\n', "a.jsonl, line 2: not JSON"),
        (
            "classifier",
            "a.jsonl",
            b'{"text": "x", "text": "y"}\n',
            'line 1: not JSON: an object has the key "text" twice',
        ),
        ("classifier", "a.txt", b"x\n\0y\n", "a.txt, line 2 has a NUL character"),
        ("classifier", "a.txt", b"x\ry\r", "a.txt has lines that end in \\r alone"),
        ("classifier", "a.jsonl", b'{"title": "x"}\n', "line 1: the model reads text, and the file has title"),
        ("regression", "a.jsonl", b'{"text": "x"}\n', "line 1: the model reads text_a and text_b"),
        ("regression", "a.tsv", b"a\tb\nc\n", "a.tsv, line 2 has 1 column(s), and the first row has 2"),
        ("regression", "a.tsv", b"a\tb\tc\n", "a.tsv, line 1: there are 3 column(s) and no header"),
        ("multi_label", "a.tsv", b"a\tb\n", "a.tsv, line 1: there are 2 column(s) and no header"),
        ("classifier", "a.csv", b'text\n"x\n', "a.csv, line 2: not CSV"),
        ("span", "a.txt", b"a\tb\n", "the model reads question and context: give --format=tsv, csv or jsonl"),
        ("span", "a.tsv", b"a b\n", "a.tsv, line 1: there are 1 column(s) and no header"),
        ("multiple_choice", "a.jsonl", b'{"passage": "", "question": "", "options": ["a"]}', "at least 2"),
        ("multiple_choice", "a.tsv", b"passage\tquestion\toptions\na\tb\tc d\n", "line 2: options is 'c d'"),
        (
            "multiple_choice",
            "a.tsv",
            b"question\tone\ttwo\na\tb\tc\n",
            "has question, one, two: say which column is what (--columns=options=NAME)",
        ),
        ("multiple_choice", "a.tsv", b"question\tA\tB\na\tb\t\n", "line 2: there are 1 options"),
        ("classifier", "a.txt", b"", "has no rows"),
        ("classifier", "a.txt.gz", gzip.compress(b"text\n" * 99, mtime=0)[:-9], "not a whole gzip file"),
        ("classifier", "a.md", b"text", "does not tell the form"),
        ("classifier", "missing.txt", None, "is not a file"),
    ],
)
def test_bad_rows_are_one_sentence_and_leave_no_file(model, tmp_path, name, file, content, message):
    path = tmp_path / "in" / file
    path.parent.mkdir()
    if content is not None:
        path.write_bytes(content)
    said = refusal(predict, f"--model={model(name)}", f"--input={path}", f"--output={tmp_path / 'out' / 'o.jsonl'}")
    assert message in said
    assert not (tmp_path / "out").exists() or os.listdir(tmp_path / "out") == []


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--output=a.txt"], "must end in .jsonl, .tsv"),
        (["--columns=text"], "must have INPUT=COLUMN"),
        (["--columns=txt=0"], "the model has no input 'txt': it reads text"),
        (["--columns=text=3"], "there is no column '3' for text"),
        (["--columns=text=0,text=1"], "names 2 columns for text, but it is one text"),
        (["--pooling=mean"], "--pooling is for vectors"),
        (["--model=nowhere"], "nowhere"),
        (["--top_k=5"], "--top_k is for pre-trained models, which fill gaps, and"),
        (["--top_k=5", "--output=v.npy"], "--top_k does nothing for vectors"),
        (["--output_format=tsv", "--output=v.npy"], "--output_format does nothing for vectors"),
        (["--max_seq_length=1024"], "max_seq_length is 1024, but the model has 32 positions"),
    ],
)
def test_wrong_arguments(model, tmp_path, arguments, message):
    given = [f"--model={model('classifier')}", write(tmp_path / "a.tsv", "x\ny\n"), f"--output={tmp_path / 'o.jsonl'}"]
    assert message in refusal(predict, *given, *arguments)


def test_from_standard_input_to_standard_output(model):
    """The whole command, as a process; progress is on standard error, and a closed pipe is no error message."""
    command = [sys.executable, "-m", "albert_tf.predict", f"--model={model('classifier')}", "--rows_at_a_time=2"]
    done = subprocess.run(command, input="a b\n\nc\n", capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [set(answer) for answer in answers] == [{"label", "probability", "is_cut", "probabilities"}] * 3
    assert "predicting: 3 rows" in done.stderr and "Traceback" not in done.stderr
    bad = subprocess.run([*command, "--format=jsonl"], input='{"text": "x"}\n{\n', capture_output=True, text=True)
    assert bad.returncode == 1 and "standard input, line 2: not JSON" in bad.stderr and "Traceback" not in bad.stderr


def test_a_table_has_a_column_of_identifiers_or_none(tmp_path):
    rows = [Given(f"line {number}", {}, id_) for number, id_ in enumerate((None, 7, "a\tb", None))]
    answers = [{"value": number / 2} for number in range(4)]
    with output.opened(str(tmp_path / "a.tsv"), "tsv", ()) as write_rows:
        for some in (slice(2), slice(2, 4)):
            write_rows(rows[some], answers[some])
    assert (tmp_path / "a.tsv").read_text() == "id\tvalue\n\t0.0\n7\t0.5\na b\t1.0\n\t1.5\n"
    refused = pytest.raises(InputError, match="line 1 has an id, and the table has no column for it")
    with refused, output.opened(str(tmp_path / "b.tsv"), "tsv", ()) as write_rows:
        write_rows(rows[:1], answers[:1])
        write_rows(rows[1:], answers[1:])
    assert not (tmp_path / "b.tsv").exists()


def test_rows_are_read_as_they_are_asked_for(tmp_path):
    """A file of any length: nothing behind what is asked for is parsed, so nothing of it is held."""
    (tmp_path / "a.jsonl").write_text('{"text": "x"}\n' * 1000 + "broken\n")
    found = Source(str(tmp_path / "a.jsonl")).rows()
    assert [next(found).values for _ in range(1000)] == [{"text": "x"}] * 1000
    with pytest.raises(InputError, match="line 1001"):
        next(found)


def test_what_nothing_tells_may_be_single_or_a_pair(model):
    answerer = loading.load_answerer(model("multi_label"))
    single, both = {"text": "a b"}, {"text_a": "a", "text_b": "b"}
    assert [len(answerer.answers([one])) for one in (single, both)] == [1, 1]
    with pytest.raises(BadInstance, match="instance 1: it has text_a, but must have text, or text_a and text_b"):
        answerer.answers([single, {"text_a": "a"}])
    with pytest.raises(BadInstance, match="it is 'a', but must be an object"):
        answerer.answers(["a"])
    assert list(columns.instances(iter([]), answerer.forms, row_form="tsv")) == []


@pytest.mark.parametrize("name, output", [("classifier", "o.jsonl"), ("pretrained", "v.npy")])
def test_bfloat16_is_asked_for(model, tmp_path, name, output):
    given = write(tmp_path / "a.txt", "\n".join(TEXTS) + "\n")
    found = []
    for precision in ("float32", "bfloat16"):
        arguments = [f"--model={model(name)}", given, f"--output={tmp_path / output}", f"--mixed_precision={precision}"]
        assert refusal(predict, *arguments) == ""
        if output.endswith(".npy"):
            found.append(np.load(tmp_path / output))
        else:
            lines = (tmp_path / output).read_text().splitlines()
            found.append(np.array([[*json.loads(line)["probabilities"].values()] for line in lines]))
    assert tf.keras.mixed_precision.global_policy().name == "float32"
    assert 1e-5 < np.abs(found[0] - found[1]).max() < 0.1


def test_a_batch_that_is_not_filled_up_gives_the_same(model):
    filled, bare = (loading.load_answerer(model("classifier"), fills=fills) for fills in (True, False))
    instances = [{"text": text} for text in TEXTS]
    for count in (0, 1, 3, len(TEXTS)):
        pairs = list(zip(filled.answers(instances[:count]), bare.answers(instances[:count])))
        assert len(pairs) == count
        for one, other in pairs:
            assert one["label"] == other["label"]
            np.testing.assert_allclose(one["probabilities"], other["probabilities"], atol=1e-6)
