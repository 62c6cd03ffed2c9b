"""What a model is to the server: signatures, requests of rows, and answers to several requests at once."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

DEFAULT_SIGNATURE = "serving_default"
NO_ROWS = "an output has not one value for each row: ask in the column form ('inputs'), and for fewer rows"

Columns = dict[str, Any]  # output to its values, a list with one for each row


class RequestError(Exception):
    """A request cannot be answered: an HTTP status and a sentence."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status
        self.message = message


class RowError(RequestError):
    """One row is not what the model reads: its place in the request that was given, and what is wrong with it."""

    def __init__(self, row: int, problem: str):
        super().__init__(400, f"instance {row}: {problem}")
        self.row = row
        self.problem = problem


class TensorInfo(NamedTuple):
    """A tensor of a signature.

    Attributes:
        type: TensorFlow's name of it.
        shape: with -1 where a size differs; None where even the rank does.
        name: inside the model.
    """

    type: str
    shape: tuple[int, ...] | None
    name: str


class Signature(NamedTuple):
    """Name to tensor of what goes in and comes out."""

    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]


def has_rows(columns: Columns, rows: int) -> bool:
    """Whether each output is a list with a value for each of so many rows."""
    return all(isinstance(values, list) and len(values) == rows for values in columns.values())


class Request(NamedTuple):
    """Rows for the model.

    Attributes:
        key: requests with equal ones can be answered together.
        rows: how many.
        data: of the backend's own kind.
        can_split: whether `Backend.split` can take it apart.
        characters: of the texts of each row that `Backend.split` can part; or nothing, where they are not counted.
        of_rows: how many the request has that this is a part of; 0 where it is a whole one.
    """

    key: Hashable
    rows: int
    data: Any
    can_split: bool = True
    characters: tuple[int, ...] = ()
    of_rows: int = 0


class Backend(Protocol):
    """A loaded model.

    Attributes:
        version: its number.
        signatures: by name; `DEFAULT_SIGNATURE` among them.
        task: what it does, for a person.
        examples: signature to an instance to begin with, where there is one.
    """

    version: int
    signatures: Mapping[str, Signature]
    task: str
    examples: Mapping[str, Any]

    def from_rows(self, signature: str, instances: Sequence[Any]) -> Request:
        """The request of the row form.

        Raises:
            RequestError: the instances are not what the signature takes.
        """

    def from_columns(self, signature: str, inputs: Any) -> Request:
        """The request of the column form.

        Raises:
            RequestError: the inputs are not what the signature takes.
        """

    def split(self, request: Request, start: int, stop: int) -> Request:
        """The request with some of its rows."""

    def run(self, requests: Sequence[Request]) -> list[Columns]:
        """The answers to requests with one key; called by one thread at a time.

        Raises:
            RequestError: they are wrong in a way that only the model finds.
        """
