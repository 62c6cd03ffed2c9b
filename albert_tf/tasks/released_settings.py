"""The lengths that the released scripts have by default, in pieces: run_squad_v1.py, run_squad_v2.py, run_race.py."""

from __future__ import annotations

DOC_STRIDE = 128
MAX_QUERY_LENGTH = 64
MAX_ANSWER_LENGTH = 30
N_BEST_SIZE = 20  # answers, not pieces
MAX_QA_LENGTH = 128
