"""GLUE's readers: the real files' counts, and made files in the layouts and with the faults of the originals."""

from __future__ import annotations

import collections
import re

import pytest

from albert_tf.errors import InputError
from albert_tf.tasks.catalogue import TASKS, find_task
from albert_tf.tasks.text_file import Columns, text_file_task

# Rows and labels as the README beside the files counts them.
REAL = {
    "CoLA/train.tsv": {"0": 2528, "1": 6023},
    "CoLA/dev.tsv": {"0": 162, "1": 365},
    "SST-2/train.tsv": {"0": 29780, "1": 37569},
    "SST-2/dev.tsv": {"0": 428, "1": 444},
    "RTE/train.tsv": {"entailment": 999, "not_entailment": 1001},
    "RTE/dev.tsv": {"entailment": 146, "not_entailment": 131},
    "RTE/test.tsv": {None: 3000},
    "WNLI/train.tsv": {"0": 288, "1": 277},
    "WNLI/dev.tsv": {"0": 35, "1": 35},
    "QNLI/train_slice.tsv": {"entailment": 1472, "not_entailment": 1528},
    "QNLI/dev.tsv": {"entailment": 519, "not_entailment": 481},
    "MNLI/train_slice.tsv": {"contradiction": 1672, "entailment": 1752, "neutral": 1576},
    "MNLI/dev_matched.tsv": {"contradiction": 645, "entailment": 752, "neutral": 603},
}
QQP_HEADER = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate"
MRPC_HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
MNLI_TRAIN_HEADER = (
    "index\tpromptID\tpairID\tgenre\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse"
    "\tsentence1\tsentence2\tlabel1\tgold_label"
)
MNLI_DEV_HEADER = MNLI_TRAIN_HEADER.replace("label1", "label1\tlabel2\tlabel3\tlabel4\tlabel5")
PAIR_HEADER = "index\tsentence1\tsentence2\tlabel"
STSB_HEADER = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore"


@pytest.fixture
def read(tmp_path):
    """A function of a task's name and a file's content that reads the file."""

    def reading(name, content):
        path = tmp_path / "file.tsv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return find_task(name).read(str(path))

    return reading


def lines(*rows, end="\n"):
    return "".join(row + end for row in rows)


@pytest.mark.parametrize("name", REAL)
def test_real_files_have_the_counted_rows_and_labels(shared, name):
    path = shared / "data" / "glue" / name
    examples = find_task(name.split("/")[0]).read(str(path))
    assert collections.Counter(example.label for example in examples) == REAL[name]
    assert all(example.text_a.strip() for example in examples)
    has_header = not name.startswith("CoLA")
    assert examples[-1].place == f"{path}, line {len(examples) + has_header}"


@pytest.mark.parametrize(("name", "rows", "mean"), [("train", 4749, 2.57), ("dev", 1250, 2.17)])
def test_real_scores(shared, name, rows, mean):
    examples = find_task("sts-b").read(str(shared / "data" / "glue" / "STS-B" / f"{name}.tsv"))
    scores = [example.label for example in examples]
    assert (len(scores), min(scores), max(scores)) == (rows, 0.0, 5.0)
    assert sum(scores) / rows == pytest.approx(mean, abs=0.005)


def test_first_rows_of_real_files_are_what_the_files_say(shared):
    glue = shared / "data" / "glue"
    first = find_task("sst-2").read(str(glue / "SST-2" / "dev.tsv"))[0]
    assert (first.text_a, first.text_b, first.label) == ("it 's a charming and often affecting journey . ", None, "1")
    first = find_task("mnli").read(str(glue / "MNLI" / "dev_matched.tsv"))[0]
    assert (first.id, first.text_a, first.text_b) == ("5000", "what was the problem", "What was the issue?")
    first = find_task("cola").read(str(glue / "CoLA" / "dev.tsv"))[0]
    assert (first.id, first.text_a) == ("0", "The sailors rode the breeze clear of the rocks.")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_quotes_are_ordinary_characters_and_line_ends_of_both_kinds_are_taken(read, end):
    examples = read("cola", lines('x\t1\t\tHe said "no.', 'x\t0\t*\t\'Tis "so".\u2028Yes.', end=end))
    assert [example.text_a for example in examples] == ['He said "no.', '\'Tis "so".\u2028Yes.']
    assert [example.label for example in examples] == ["1", "0"]


def test_cola_test_file_has_a_header_and_its_own_index(read):
    (example,) = read("cola", lines("index\tsentence", "7\tBill sings."))
    assert (example.id, example.text_a, example.label) == ("7", "Bill sings.", None)


def test_mrpc_with_byte_order_mark_and_without_labels(read):
    example = read("mrpc", b"\xef\xbb\xbf" + lines(MRPC_HEADER, '1\t70\t71\tA "b .\tC , d" .').encode())[0]
    assert (example.id, example.text_a, example.text_b, example.label) == ("0", 'A "b .', 'C , d" .', "1")
    (example,) = read("mrpc", lines(MRPC_HEADER.replace("Quality", "index"), "0\t10\t11\tA .\tB ."))
    assert (example.id, example.text_a, example.text_b, example.label) == ("0", "A .", "B .", None)


def test_qqp_leaves_out_broken_rows_and_says_how_many(read, caplog):
    content = lines(
        QQP_HEADER,
        "133\t1\t2\tHow?\tWhy?\t0",
        "134\t3\t4\tA question with",
        "a line end\tWhat?\t1",
        '135\t5\t6\tIs "it?\tIs it?\t1',
    )
    with caplog.at_level("WARNING", logger="absl"):
        examples = read("qqp", content)
    assert [(e.id, e.text_a, e.text_b, e.label) for e in examples] == [
        ("133", "How?", "Why?", "0"),
        ("135", 'Is "it?', "Is it?", "1"),
    ]
    assert examples[1].place.endswith("line 5")
    assert re.search(
        r"left out 2 row\(s\) with missing or surplus columns, the first in .*, line 3$", caplog.text, re.M
    )


def test_quoras_own_file_has_quotes_around_questions(read):
    header = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate"
    torn = '1\t3\t4\t"Who says ""a""\nand b?"\tWhy?\t1'
    examples = read("qqp", lines(header, "0\t1\t2\tHow?\tWhy?\t0", torn, "2\t5\t6\tWhere?\tWhen?\t0"))
    assert [(e.text_a, e.label) for e in examples] == [("How?", "0"), ('Who says "a"\nand b?', "1"), ("Where?", "0")]
    assert [e.place.rsplit(", ")[1] for e in examples] == ["line 2", "line 3", "line 5"]
    in_quotes = '"id"\t"question1"\t"question2"\t"is_duplicate"'
    (example,) = read("qqp", lines(in_quotes, '"0"\t"The ""who""?"\t"Who?"\t"1"'))
    assert (example.id, example.text_a, example.text_b, example.label) == ("0", 'The "who"?', "Who?", "1")
    glue = read("qqp", lines(header, '0\t1\t2\t"How" is it?\t"Why"?\t0', "1\t3\t4\tWho", "2\t5\t6\tWhere?\tWhen?\t0"))
    assert [e.text_a for e in glue] == ['"How" is it?', "Where?"]


def test_qqp_test_rows_are_never_left_out(read):
    examples = read("qqp", lines("id\tquestion1\tquestion2", "0\tHow?\tWhy?", "1\tWho?\t"))
    assert [(e.id, e.text_a, e.text_b, e.label) for e in examples] == [
        ("0", "How?", "Why?", None),
        ("1", "Who?", "", None),
    ]
    with pytest.raises(InputError, match=r"file\.tsv, line 3 has 2 column\(s\), and the first line has 3"):
        read("qqp", lines("id\tquestion1\tquestion2", "0\tHow?\tWhy?", "1\tWho?"))


@pytest.mark.parametrize(
    ("header", "labels"),
    [(MNLI_TRAIN_HEADER, "neutral"), (MNLI_DEV_HEADER, "entailment\tneutral\tneutral\tneutral\tneutral")],
)
def test_mnli_takes_the_gold_label_of_train_and_dev(read, header, labels):
    (example,) = read("mnli", lines(header, f"5\t1\t1a\tfiction\t(a)\t(b)\t(c)\t(d)\tOne.\tTwo.\t{labels}\tneutral"))
    assert example.label == "neutral"
    assert (example.id, example.text_a, example.text_b) == ("5", "One.", "Two.")


def test_mnli_test_and_diagnostic_files(read):
    header = MNLI_TRAIN_HEADER.replace("\tlabel1\tgold_label", "")
    (example,) = read("mnli", lines(header, "0\t1\t1a\tfiction\t(a)\t(b)\t(c)\t(d)\tOne.\tTwo."))
    assert (example.id, example.text_b, example.label) == ("0", "Two.", None)
    (example,) = read("mnli", lines("index\tsentence1\tsentence2", "0\tThe cat sat.\tIt did not sit."))
    assert (example.text_a, example.label) == ("The cat sat.", None)
    header = "Lexical Semantics\tPredicate-Argument Structure\tLogic\tKnowledge\tDomain\tPremise\tHypothesis\tLabel"
    (example,) = read("mnli", lines(header, "\t\tNegation\t\tNews\tIt rains.\tIt is dry.\tcontradiction"))
    assert (example.text_a, example.text_b, example.label) == ("It rains.", "It is dry.", "contradiction")


def test_mnli_rows_without_a_majority_are_left_out_and_counted(read, caplog):
    row = "1\t1\t1a\tfiction\t(a)\t(b)\t(c)\t(d)\tOne.\tTwo.\tneutral\t"
    with caplog.at_level("WARNING", logger="absl"):
        examples = read("mnli", lines(MNLI_TRAIN_HEADER, row + "-", row + "neutral"))
    assert len(examples) == 1
    assert re.search(r"left out 1 row\(s\) with the label '-', the first in .*, line 2$", caplog.text, re.M)


def test_sts_b_scores_are_numbers_from_0_to_5(read):
    row = "0\tmain-news\tMSRpar\t2012\t0001\tnone\tnone\tA.\tB.\t"
    assert read("sts-b", lines(STSB_HEADER, row + "3.800"))[0].label == 3.8
    assert read("sts-b", lines(STSB_HEADER.replace("\tscore", ""), row[:-1]))[0].label is None
    for score in ("5.1", "-1", "nan", "inf", "high", ""):
        with pytest.raises(InputError, match=r"line 2: the label is .* but must be a number from 0 to 5"):
            read("sts-b", lines(STSB_HEADER, row + score))


@pytest.mark.parametrize(
    ("task", "content", "message"),
    [
        ("rte", "", "is empty"),
        ("rte", "\n\n", "is empty"),
        ("rte", f"{PAIR_HEADER}\n", "has no example"),
        ("rte", f"{PAIR_HEADER}\n0\tA\tB\tmaybe\n", "line 2: the label is 'maybe', but RTE's labels are entailment"),
        ("rte", f"{PAIR_HEADER}\n0\tA\tB\tentailment\n1\tA\tB\n", r"line 3 has 3 column"),
        ("rte", f"{PAIR_HEADER}\n0\tA\tB\tC\tentailment\n", r"line 2 has 5 column"),
        ("rte", "index\tsentence1\tsentence1\tsentence2\tlabel\n0\tA\tB\tC\tD\n", "'sentence1' is there twice"),
        ("rte", f"{STSB_HEADER}\n", "line 1: RTE needs .* sentence1, sentence2 and, .* label; found index, genre"),
        ("sts-b", f"{PAIR_HEADER}\n0\tA\tB\tentailment\n", "STS-B needs a header .* score; found index, sentence1"),
        ("qnli", f"{PAIR_HEADER}\n", "QNLI needs .* question, sentence .* found index, sentence1"),
        ("mrpc", f"{QQP_HEADER}\n", "MRPC needs .* #1 string, #2 string .* found id, qid1"),
        ("sst-2", "a film\t1\n", "SST-2 needs a header with the columns sentence and, .*found a film, 1"),
        ("cola", "sentence\tlabel\nA.\t1\n", "line 1: CoLA files have no header .* found sentence, label"),
        ("cola", f"{PAIR_HEADER}\n", "CoLA files have no header and four columns .* found index, sentence1"),
        ("cola", "x\t1\t\tA.\nx\t2\t\tB.\n", "line 2: the label is '2', but CoLA's labels are 0, 1"),
        ("cola", "x\t1\t\tA.\n\nx\t1\t\tB.\n", r"line 2 has 1 column\(s\), and the first line has 4"),
        ("wnli", f"{PAIR_HEADER}\n0\tA\tB\tentailment\n", "WNLI's labels are 0, 1"),
    ],
)  # fmt: skip
def test_wrong_files_are_told_with_their_place(read, task, content, message):
    with pytest.raises(InputError, match=message) as caught:
        read(task, content)
    assert "file.tsv" in str(caught.value)


def test_bytes_that_are_not_utf_8_are_told_with_their_line(read):
    with pytest.raises(InputError, match=r"file\.tsv, line 3: the byte 0xe9 is not UTF-8"):
        read("sst-2", b"sentence\tlabel\nfine \t1\ncaf\xe9 \t0\n")


def test_empty_texts_are_kept_and_counted(read, caplog):
    with caplog.at_level("WARNING", logger="absl"):
        examples = read("sst-2", lines("sentence\tlabel", "\t1", "good \t1", "  \t0"))
    assert len(examples) == 3
    assert re.search(r"2 example\(s\) have an empty text, the first in .*file\.tsv, line 2", caplog.text)


def test_a_missing_file_is_told_with_its_full_name(tmp_path):
    with pytest.raises(InputError, match=re.escape(str(tmp_path / "train.tsv"))):
        find_task("rte").path(str(tmp_path), "train")
    with pytest.raises(InputError, match=r"nowhere\.tsv"):
        find_task("rte").read(str(tmp_path / "nowhere.tsv"))
    with pytest.raises(InputError, match="is a directory"):
        find_task("rte").read(str(tmp_path))


def test_a_data_directory_is_the_tasks_own_or_the_one_above(tmp_path):
    for folder, name in (("MNLI", "train.tsv"), ("MNLI", "test_mismatched.tsv"), ("diagnostic", "diagnostic.tsv")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text("x")
    task = find_task("mnli")
    for directory in (tmp_path, tmp_path / "MNLI"):
        assert task.path(str(directory), "train").endswith("MNLI/train.tsv")
        assert task.path(str(directory), "test_ax").endswith("diagnostic/diagnostic.tsv")
    assert task.dev_splits == ("dev_matched", "dev_mismatched")
    assert task.test_splits == ("test_matched", "test_mismatched", "test_ax")


@pytest.mark.parametrize(
    ("given", "name"),
    [("CoLA", "cola"), ("COLA", "cola"), ("STS", "sts-b"), ("sts-b", "sts-b"), ("stsb", "sts-b"), ("STS_B", "sts-b"),
     ("SST2", "sst-2"), ("sst", "sst-2"), ("MNLI", "mnli"), ("mnli-m", "mnli"), ("Rte", "rte")],
)  # fmt: skip
def test_tasks_are_found_by_the_names_people_use(given, name):
    assert find_task(given).name == name


def test_an_unknown_task_lists_all():
    with pytest.raises(InputError, match="there is no task 'glue'") as caught:
        find_task("glue")
    for name in (
        "cola",
        "sst-2",
        "mrpc",
        "sts-b",
        "qqp",
        "mnli",
        "qnli",
        "rte",
        "wnli",
        "text",
        *(set(TASKS) - {"text_file"}),
    ):
        assert f" {name}" in str(caught.value)


def test_heads_and_starting_points():
    assert find_task("sts-b").head_config().problem == "regression"
    assert find_task("sts-b").head_config().num_labels == 1
    assert find_task("mnli").head_config().labels == ("contradiction", "entailment", "neutral")
    assert find_task("cola").head_config().problem == "single_label_classification"
    assert {task.name for task in TASKS.values() if task.start_from == "mnli"} == {"rte", "sts-b", "mrpc"}
    assert all(task.metrics and task.words and task.files["train"] for task in TASKS.values())


def test_quoted_cells_are_told_with_a_way_to_read_them(tmp_path):
    """What the message says to do reads the file, line ends in its cells included."""
    path = tmp_path / "quoted.tsv"
    header = ["index", "question", "sentence", "label"]
    body = ["0", "Who\nis it?", 'The ""who""?', "entailment"]
    path.write_text("".join("\t".join(f'"{cell}"' for cell in cells) + "\n" for cells in (header, body)))
    flags = "--task=text --text_column=question --text_b_column=sentence --label_column=label"
    with pytest.raises(InputError, match=f"line 1: the cells are in double quotes.*save this one as .csv.*{flags}"):
        find_task("qnli").read(str(path))
    own = text_file_task(Columns("question", "sentence", "label"))
    (example,) = own.read(str(path.rename(tmp_path / "quoted.csv")))
    assert (example.text_a, example.text_b, example.label) == ("Who\nis it?", 'The "who"?', "entailment")
