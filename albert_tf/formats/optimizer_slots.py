"""Which variables of a TF1 checkpoint belong to its optimizer and not to the model."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Of the released AdamW and LAMB; they stand behind the name of their variable.
_OWN_SLOTS = frozenset(("adam_m", "adam_v", "lamb_m", "lamb_v"))
# Of TensorFlow's optimizers and averages. A layer may have such a name, so the variable itself must be there too.
_OTHER_SLOTS = re.compile(
    r"(Adam|AdamW|AdamWeightDecayOptimizer|LAMB|LAMBOptimizer|Momentum|Adagrad|Adadelta|RMSProp|Ftrl|m|v"
    r"|ExponentialMovingAverage|moving_average|accumulator)(_\d+)?"
)
# Counters, beside the variables.
_COUNTERS = re.compile(
    r"global_step|beta[12]_power(_\d+)?|(current_)?loss_scale|(num_)?good_steps|learning_rate|save_counter"
)


def slots_among(names: Iterable[str]) -> tuple[str, ...]:
    """Those of the names that are optimizer slots, moving averages or counters, in their order."""
    names = list(names)
    known = set(names)

    def is_slot(name: str) -> bool:
        parent, _, leaf = name.rpartition("/")
        if leaf in _OWN_SLOTS or _COUNTERS.fullmatch(leaf):
            return True
        return bool(_OTHER_SLOTS.fullmatch(leaf)) and parent in known

    return tuple(name for name in names if is_slot(name))
