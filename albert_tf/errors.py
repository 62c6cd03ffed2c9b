"""How a wrong input is told to a person: one sentence, exit code 1, no stack trace."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from absl import app, flags


class InputError(ValueError):
    """Something the user gave is wrong; the message says what, where and what to do about it.

    Raised for files, flags, settings and data. A programming error stays a plain exception with its stack trace.
    """


def run_main(main: Callable[[Sequence[str]], int | None]) -> None:
    """Runs a script's `main` under absl and turns an `InputError` into `error: <sentence>` and exit code 1."""

    def guarded(argv: Sequence[str]) -> int | None:
        if len(argv) > 1:
            print(f"error: unexpected argument {argv[1]!r}: everything is given as --flag=value", file=sys.stderr)
            return 1
        try:
            return main(argv)
        except InputError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            return 130

    app.run(guarded, flags_parser=_parse_flags)


def _parse_flags(argv: Sequence[str]) -> list[str]:
    """Parses the flags; a bad one gets one line on stderr instead of absl's usage page."""
    try:
        return flags.FLAGS(argv)
    except SystemExit:  # absl's --help, which has done what was asked for but exits with 1
        sys.exit(0)
    except flags.Error as error:
        print(f"error: {error} (--help lists the flags)", file=sys.stderr)
        sys.exit(1)
