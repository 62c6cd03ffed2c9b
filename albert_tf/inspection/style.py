"""The look of a page, light and dark, and the few lines of script it has; it reads well without the script."""

STYLE = """
:root { color-scheme: light dark; --back: #fbfbfa; --card: #fff; --ink: #1d2125; --soft: #5d6670; --line: #dcdfe3;
  --good: #1a7f4b; --bad: #c0322b; --gold: #bfe8cd; --predicted: #cfe0fc; --accent: #3567c4; --second: #b3531c; }
@media (prefers-color-scheme: dark) { :root { --back: #15181b; --card: #1d2125; --ink: #e4e7ea; --soft: #9ba5af;
  --line: #363c43; --good: #5cc890; --bad: #ff8078; --gold: #1f5135; --predicted: #25406f; --accent: #7aa7f5;
  --second: #e59660; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto,
  "Noto Sans", "Noto Sans CJK SC", sans-serif; }
main { max-width: 1000px; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.5rem; margin: 0 0 .5rem; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin: 1.8rem 0 .6rem; }
.note { color: var(--soft); }
.facts { display: flex; flex-wrap: wrap; gap: .6rem; margin: .8rem 0; padding: 0; list-style: none; }
.facts li { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .4rem .8rem;
  overflow-wrap: anywhere; }
.facts b { display: block; font-size: 1.15rem; font-variant-numeric: tabular-nums; }
.facts span { color: var(--soft); font-size: .85rem; }
.scrolls { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; border: 1px solid var(--line); }
th { font-weight: 600; } thead th { vertical-align: bottom; } tbody th { text-align: left; }
td.share { background: color-mix(in srgb, var(--tint, var(--bad)) calc(var(--share) * 55%), var(--card)); }
td.diagonal { --tint: var(--good); }
svg { max-width: 100%; height: auto; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
svg text { fill: var(--soft); font: 12px system-ui, sans-serif; }
svg .grid { stroke: var(--line); } svg .even { stroke: var(--soft); stroke-dasharray: 4 4; }
svg .dot { fill: var(--accent); fill-opacity: .55; } svg .curve { fill: none; stroke: var(--accent); stroke-width: 2; }
svg .mark { fill: var(--second); }
.plots { display: flex; flex-wrap: wrap; gap: .8rem; margin-bottom: .8rem; }
tr.best td { background: var(--gold); }
.tools { position: sticky; top: 0; z-index: 1; display: flex; flex-wrap: wrap; gap: .5rem 1.2rem; align-items: center;
  background: var(--back); padding: .6rem 0; border-bottom: 1px solid var(--line); margin-bottom: .8rem; }
.tools [hidden] { display: none; }
.tools input[type=search] { font: inherit; padding: .25rem .6rem; border: 1px solid var(--line); border-radius: 6px;
  background: var(--card); color: inherit; width: 16rem; max-width: 100%; }
body:has(#only-errors:checked) .right { display: none; }
article { background: var(--card); border: 1px solid var(--line); border-left: 4px solid var(--line); border-radius:
  8px;
  padding: .6rem .9rem; margin: .7rem 0; }
article.wrong { border-left-color: var(--bad); } article.right { border-left-color: var(--good); }
article header { display: flex; flex-wrap: wrap; gap: .1rem 1.1rem; align-items: baseline; }
article header .place { margin-left: auto; color: var(--soft); font-size: .8rem; overflow-wrap: anywhere; }
.verdict { font-weight: 600; } .wrong .verdict { color: var(--bad); } .right .verdict { color: var(--good); }
.key { color: var(--soft); } .value { font-weight: 600; overflow-wrap: anywhere; }
p.text { margin: .35rem 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.part { color: var(--soft); font-size: .8rem; font-weight: 600; }
details { margin: .3rem 0; } summary { cursor: pointer; }
a, summary { color: var(--accent); }
mark { color: inherit; border-radius: 3px; padding: 0 .1em; }
mark.gold { background: var(--gold); } mark.predicted { background: var(--predicted); }
mark.predicted, mark.both { border-bottom: 2px solid var(--accent); border-radius: 3px 3px 0 0; }
mark.both { background: var(--gold); }
ol.bars { list-style: none; margin: .4rem 0; padding: 0; } ol.bars li { display: grid; margin: .15rem 0; gap: .6rem;
  grid-template-columns: 3.6rem minmax(4rem, 8rem) 1fr; align-items: baseline; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.bar { background: var(--line); border-radius: 3px; height: .6rem; align-self: center; overflow: hidden; }
.bar i { display: block; height: 100%; background: var(--accent); width: calc(var(--share) * 100%); }
.is { font-size: .8rem; border-radius: 9px; padding: .05rem .5rem; margin-inline-start: .4rem; white-space: nowrap; }
.is.gold { background: var(--gold); } .is.predicted { background: var(--predicted); }
.words { line-height: 2.6; } .word { display: inline-block; line-height: 1.15; text-align: center;
  vertical-align: top; margin: .45rem 1px 0; }
.word.tagged { background: var(--predicted); border-radius: 4px; padding: 0 .25rem; }
.word.good { background: var(--gold); } .word.bad { outline: 2px solid var(--bad); border-radius: 4px;
  padding: 0 .25rem; }
.word small { display: block; font-size: .68rem; color: var(--soft); } .word small.bad { color: var(--bad); }
"""

SCRIPT = """
const box = document.getElementById("filter");
if (box) {
  const articles = [...document.querySelectorAll("article")].map(a => [a, a.textContent.toLowerCase()]);
  box.parentElement.hidden = false;
  box.addEventListener("input", () => {
    const wanted = box.value.toLowerCase();
    for (const [article, text] of articles) article.hidden = !text.includes(wanted);
  });
}
"""
