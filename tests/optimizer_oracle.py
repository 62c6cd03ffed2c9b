"""LAMB and AdamW in NumPy, float64, written from the definitions; the tests hold the optimizers against them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np


def clip_by_global_norm(gradients: Mapping[str, np.ndarray], limit: float = 1.0) -> dict[str, np.ndarray]:
    gradients = {name: np.asarray(value, np.float64) for name, value in gradients.items()}
    norm = np.sqrt(sum(np.sum(value**2) for value in gradients.values()))
    return {name: value * (limit / max(norm, limit)) for name, value in gradients.items()}


class Optimizer:
    """One of `lamb` and `adamw`; moments start at 0, and the weights it is given are copied."""

    def __init__(
        self,
        name: str,
        weights: Mapping[str, np.ndarray],
        excluded: Sequence[str],
        *,
        bias_correction: bool,
        weight_decay: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
    ) -> None:
        self.lamb = {"lamb": True, "adamw": False}[name]
        self.weights = {name: np.array(value, np.float64) for name, value in weights.items()}
        self.m = {name: np.zeros_like(value) for name, value in self.weights.items()}
        self.v = {name: np.zeros_like(value) for name, value in self.weights.items()}
        self.excluded = set(excluded)
        self.steps = 0
        self.bias_correction = bias_correction
        self.weight_decay, self.beta_1, self.beta_2, self.epsilon = weight_decay, beta_1, beta_2, epsilon

    def ratio(self, name: str, update: np.ndarray) -> float:
        weight_norm, update_norm = np.linalg.norm(self.weights[name]), np.linalg.norm(update)
        if not self.lamb or name in self.excluded or weight_norm == 0 or update_norm == 0:
            return 1.0
        return float(weight_norm / update_norm)

    def update(self, name: str) -> np.ndarray:
        m, v = self.m[name], self.v[name]
        if self.bias_correction:
            m = m / (1 - self.beta_1**self.steps)
            v = v / (1 - self.beta_2**self.steps)
        update = m / (np.sqrt(v) + self.epsilon)
        return update if name in self.excluded else update + self.weight_decay * self.weights[name]

    def step(self, gradients: Mapping[str, np.ndarray], rate: float) -> None:
        self.steps += 1
        for name, gradient in gradients.items():
            gradient = np.asarray(gradient, np.float64)
            self.m[name] = self.beta_1 * self.m[name] + (1 - self.beta_1) * gradient
            self.v[name] = self.beta_2 * self.v[name] + (1 - self.beta_2) * gradient**2
            update = self.update(name)
            self.weights[name] = self.weights[name] - rate * self.ratio(name, update) * update
