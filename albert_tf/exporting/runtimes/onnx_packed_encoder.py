"""The encoder for rows that hold several texts; see `albert_tf.packing` for the inputs.

R rows, L their length, E embedding size, H hidden size, N texts in all rows together.
"""

from __future__ import annotations

from albert_tf import packing
from albert_tf.exporting.runtimes.onnx_encoder import IDS, SEGMENTS, SIZES, Network


class PackedNetwork(Network):
    """`Network` where a position sees those of its text alone, and every text has positions from 0 on."""

    inputs = {
        **dict.fromkeys((IDS, SEGMENTS, packing.POSITIONS, packing.TEXTS), SIZES),
        packing.FIRST_POSITIONS: ("texts",),
    }
    output_sizes = ("texts",)
    is_packed = True

    def _seen(self) -> str:
        """[R,1,L,L]: equal numbers of the text, which leaves padding among itself."""
        of_readers, of_read = (
            self.graph.op("Unsqueeze", packing.TEXTS, self.graph.integers(*axes)) for axes in ((1, 3), (1, 2))
        )
        return self.graph.op("Equal", of_readers, of_read)  # type: ignore[no-any-return]

    def _positions(self, table: str) -> str:
        """[R,L,E]."""
        return self.graph.op("Gather", table, packing.POSITIONS)  # type: ignore[no-any-return]

    def _first_before(self, hidden: str) -> str:
        return hidden

    def _first_behind(self, hidden: str) -> str:
        """[R,L,H] to [N,1,H]."""
        graph = self.graph
        places = graph.op("Reshape", hidden, graph.integers(-1, 1, self.config.hidden_size))
        return graph.op("Gather", places, packing.FIRST_POSITIONS, axis=0)  # type: ignore[no-any-return]
