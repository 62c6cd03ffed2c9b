"""albert_tf.seeds_page: each seed's scores beside the link to its page, and the statistics below."""

from __future__ import annotations

import re

from albert_tf import finetuning_seeds, seeds_page

SCORES = [{"dev": {"entity_f1": 0.5, "entity_f1/<A>": 1.0}, "test": {"entity_f1": 0.25}}, {"dev": {"entity_f1": 0.75}}]
REPORT = {
    "metric": "entity_f1",
    "best_seed": 8,
    "scores": {"7": SCORES[0], "8": SCORES[1]},
    "summary": finetuning_seeds.summary(SCORES),
}
PAGES = {"7": 'a"b/report.html', "8": "seed-8/report.html"}


def test_seeds_and_statistics_are_rows():
    page = seeds_page.page("CoNLL <2> seeds", REPORT, PAGES)
    head, *rows = re.findall(r"<tr.*?</tr>", page)
    assert re.findall("<bdi>(.*?)</bdi>", head) == ["dev entity_f1", "dev entity_f1/&lt;A&gt;", "test entity_f1"]
    assert rows[0].startswith('<tr><th><a href="a&quot;b/report.html">seed 7</a></th>')
    assert rows[1].startswith('<tr class="best"><th><a href="seed-8/report.html">seed 8</a></th>')
    cells = [re.findall("<td>(.*?)</td>", row) for row in rows]
    assert cells[:4] == [["0.5000", "1.0000", "0.2500"], ["0.7500", "–", "–"], *2 * [["0.6250", "1.0000", "0.2500"]]]
    assert re.findall("<th>(.*?)</th>", "".join(rows[2:])) == ["median", "mean", "std", "min", "max"]
    assert "<bdi>8</bdi></b><span><bdi>best seed</bdi>" in page and "CoNLL &lt;2&gt; seeds" in page
    assert "<b><bdi>0.6250</bdi></b><span><bdi>dev entity_f1, median</bdi>" in page


def test_seeds_without_scores_have_links(tmp_path):
    report = {"metric": "accuracy", "best_seed": 7, "scores": {"7": {}, "8": {}}, "summary": {}}
    seeds_page.write(tmp_path / "a" / "report.html", "t", report, PAGES)
    assert (tmp_path / "a" / "report.html").read_text("utf-8").count("<a href") == 2
