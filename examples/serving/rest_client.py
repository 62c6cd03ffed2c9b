"""Asks a model server over REST: `python rest_client.py http://localhost:8501 albert text='A fine film.'`.

Needs Python alone. Each input is a name and one value; several values behind "|" are one row of a list, as the options
of a question.
"""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request

SECONDS = 30


def ask(server: str, model: str, instances: list[dict]) -> list:
    """One dict of inputs for each row to one prediction for each row."""
    body = json.dumps({"signature_name": "serving_default", "instances": instances}).encode()
    request = urllib.request.Request(f"{server}/v1/models/{model}:predict", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            return json.load(response)["predictions"]
    except urllib.error.HTTPError as error:
        sys.exit(f"{error.code}: {json.load(error).get('error')}")


def row_of(value: str) -> str | list[str]:
    return value.split("|") if "|" in value else value


def main() -> None:
    server, model, *pairs = sys.argv[1:]
    instance = {name: row_of(value) for name, _, value in (pair.partition("=") for pair in pairs)}
    (prediction,) = ask(server, model, [instance])
    for name, value in sorted(prediction.items()):
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
