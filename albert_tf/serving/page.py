"""A page to try the model by hand; it loads nothing from elsewhere."""

from __future__ import annotations

import html
import json
from typing import Any

from albert_tf.serving.backend import DEFAULT_SIGNATURE, Backend

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{name}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }}
label {{ display: block; margin-top: 1rem; font-weight: 600; }}
textarea {{ width: 100%; box-sizing: border-box; font: inherit; padding: .4rem; }}
button {{ font: inherit; margin-top: 1rem; padding: .4rem 1.2rem; }}
pre {{ background: #f4f4f4; padding: .8rem; overflow: auto; white-space: pre-wrap; }}
small {{ color: #555; font-weight: 400; }}
td {{ padding: 0 .8rem 0 0; }}
.bar {{ background: #4a7; height: .8rem; min-width: 1px; }}
</style></head><body>
<h1>{name} <small>version {version}</small></h1>
<p>{task}. <a href="{path}/metadata">signatures</a> · <a href="metrics">metrics</a></p>
<form id="form">{fields}<button>Ask</button></form>
<table id="bars"></table>
<pre id="answer" aria-live="polite"></pre>
<p>The same from a shell:</p>
<pre id="command"></pre>
<script>
const about = {about};
const areas = [...document.querySelectorAll("textarea")];
function request() {{
  const instance = {{}};
  for (const area of areas)
    instance[area.name] = about.types[area.name] === "list" ? area.value.split("\\n").filter(line => line)
      : about.types[area.name] === "json" ? JSON.parse(area.value) : area.value;
  return JSON.stringify({{instances: [instance]}});
}}
function show() {{
  let body;
  try {{ body = request(); }} catch (error) {{ body = String(error); }}
  document.getElementById("command").textContent =
    "curl -d '" + body.replaceAll("'", "'\\\\''") + "' " + new URL(about.path + ":predict", location.href);
}}
function bars(found) {{
  const table = document.getElementById("bars");
  table.replaceChildren();
  if (!found || !found.labels || !found.probabilities) return;
  found.labels.forEach((label, at) => {{
    const row = table.insertRow();
    row.insertCell().textContent = label;
    row.insertCell().textContent = found.probabilities[at].toFixed(4);
    const bar = document.createElement("div");
    bar.className = "bar";
    bar.style.width = 20 * found.probabilities[at] + "rem";
    row.insertCell().append(bar);
  }});
}}
document.getElementById("form").addEventListener("input", show);
document.getElementById("form").addEventListener("submit", async event => {{
  event.preventDefault();
  const place = document.getElementById("answer");
  try {{
    const response = await fetch(about.path + ":predict", {{method: "POST", body: request()}});
    const answer = await response.json();
    place.textContent = JSON.stringify(answer, null, 1);
    bars(answer.predictions && answer.predictions[0]);
  }} catch (error) {{ place.textContent = String(error); bars(null); }}
}});
show();
</script></body></html>
"""


def page(backend: Backend, name: str) -> str:
    """The page, with a field for each input of the default signature."""
    inputs = backend.signatures[DEFAULT_SIGNATURE].inputs
    example = backend.examples.get(DEFAULT_SIGNATURE, {})
    types = {
        key: "json" if info.type != "DT_STRING" else "list" if len(info.shape or ()) > 1 else "text"
        for key, info in inputs.items()
    }
    hints = {"json": "as JSON", "list": "one a line", "text": ""}
    fields = "".join(_field(key, hints[types[key]], example.get(key, "")) for key in inputs)
    path = f"v1/models/{name}"
    # "<" could end the script.
    about = json.dumps({"path": path, "types": types}).replace("<", "\\u003c")
    return _PAGE.format(
        name=html.escape(name),
        version=backend.version,
        task=html.escape(backend.task[:1].upper() + backend.task[1:]),
        path=path,
        fields=fields,
        about=about,
    )


def _field(key: str, hint: str, value: Any) -> str:
    text = "\n".join(value) if isinstance(value, list) else str(value)
    name = html.escape(key)
    return (
        f'<label for="{name}">{name} <small>{hint}</small></label>'
        f'<textarea id="{name}" name="{name}" rows="3">\n{html.escape(text)}</textarea>'
    )
