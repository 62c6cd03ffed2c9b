"""PyTorch's compiler and TensorFlow carry an LLVM each; only in this order do both load (measured: TensorFlow 2.21)."""

from __future__ import annotations

import contextlib

with contextlib.suppress(ImportError):
    import triton  # noqa: F401
