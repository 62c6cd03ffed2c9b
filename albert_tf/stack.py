"""The one module where the supported stacks differ: Keras 2.15 and Keras 3.

Everything else is written in the part of tf.keras that both share. What differs, and why it is here:

* the methods an optimizer overrides (`update_step` gets the rate in Keras 3 and reads it in Keras 2.15);
* whether `apply_gradients` can be told that the gradients are already summed over replicas, and whether it has summed
  them when it clips;
* variables: Keras 3 wraps a `tf.Variable` in its own class;
* tensorflow-addons, which exists for Keras 2.15 alone.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

# tf.keras of TensorFlow 2.15 has no version of its own.
KERAS_3 = int(getattr(tf.keras, "__version__", "2").split(".")[0]) >= 3


def native_variable(variable: Any) -> tf.Variable:
    """The `tf.Variable` behind a variable of either stack."""
    return variable.value if KERAS_3 and isinstance(variable, tf.keras.Variable) else variable


def _variable_key(variable: Any) -> Any:
    """What tells variables apart; a replica's copy has the key of the variable it is a copy of."""
    variable = native_variable(variable)
    if isinstance(variable, tf.distribute.DistributedValues):  # its handle exists in a replica alone
        return variable._unique_id
    for holder in (variable, getattr(variable, "handle", None)):
        container = getattr(holder, "_distributed_container", None)
        if container is not None:
            return container()._unique_id
    return variable._unique_id


class _ExcludesVariables:
    """Knows which variables are neither decayed nor scaled, exactly or by patterns on the variable's path."""

    _undecayed_keys: frozenset[Any] | None = None

    def leave_undecayed(self, variables: Iterable[Any]) -> None:
        """Excludes exactly these variables; the patterns no longer count."""
        self._undecayed_keys = frozenset(_variable_key(variable) for variable in variables)

    def is_undecayed(self, variable: Any) -> bool:
        return _variable_key(variable) in (self._undecayed_keys or ())


class MomentOptimizer(_ExcludesVariables, tf.keras.optimizers.Optimizer):
    """A Keras optimizer with two slots per variable, m and v, whose step is one pure function, `updated`.

    `undecayed_patterns` are regular expressions searched in the path of each variable (`dense/bias`), unless
    `leave_undecayed` names the variables themselves. Other keyword arguments are those of every Keras optimizer.
    """

    def __init__(
        self,
        learning_rate: Any,
        *,
        undecayed_patterns: Sequence[str],
        name: str,
        **keras_arguments: Any,
    ) -> None:
        if isinstance(undecayed_patterns, str):  # would be read letter by letter
            raise ValueError(f"undecayed_patterns must be a list of patterns, not the string {undecayed_patterns!r}")
        # Keras' own decay runs outside the update and the trust ratio; its XLA step is compiled per variable.
        keras_arguments["weight_decay"] = None
        if KERAS_3:
            super().__init__(learning_rate, name=name, **keras_arguments)
        else:
            keras_arguments["jit_compile"] = False
            super().__init__(name, **keras_arguments)
            self._learning_rate = self._build_learning_rate(learning_rate)
        self.undecayed_patterns = tuple(undecayed_patterns)
        self._slots_exist = False

    def updated(
        self,
        weight: tf.Tensor,
        gradient: tf.Tensor,
        m: tf.Tensor,
        v: tf.Tensor,
        *,
        rate: tf.Tensor,
        step: tf.Tensor,
        undecayed: bool,
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """The weight and both moments after step `step` (float32, 1 for the first); all three of the same shape."""
        raise NotImplementedError

    def exclude_from_weight_decay(
        self, var_list: Iterable[Any] | None = None, var_names: Sequence[str] | None = None
    ) -> None:
        """Keras' own way to say what is excluded, before the slots exist."""
        if self._slots_exist:
            raise ValueError("exclude_from_weight_decay() comes before the optimizer is built")
        if var_list is not None:
            self.leave_undecayed(var_list)
        if var_names is not None:
            self.undecayed_patterns = tuple(var_names)

    def build(self, variables: Sequence[Any]) -> None:
        """Creates the slots of these variables; a second call changes nothing."""
        if self._slots_exist:
            return
        variables = list(variables)
        super().build(variables)
        if self._undecayed_keys is None:
            paths = {_variable_key(v): getattr(v, "path", v.name) for v in variables}
            self._undecayed_keys = frozenset(
                key for key, path in paths.items() if any(re.search(p, path) for p in self.undecayed_patterns)
            )
        self._m = [self.add_variable_from_reference(variable, "m") for variable in variables]
        self._v = [self.add_variable_from_reference(variable, "v") for variable in variables]
        self._slots_exist = True
        self._built = True  # what Keras 2.15 asks; Keras 3 sets its own `built`

    def moments(self, variable: Any) -> tuple[tf.Variable, tf.Variable]:
        """The slots m and v of a variable."""
        positions = self._trainable_variables_indices if KERAS_3 else self._index_dict
        position = positions[self._var_key(variable)]
        return native_variable(self._m[position]), native_variable(self._v[position])

    def _clip_gradients(self, gradients: Sequence[Any]) -> list[Any]:
        """Keras' clipping, of dense gradients that are summed over replicas.

        Left to itself it counts each of a word's repeated rows apart, and in Keras 3 clips every replica's share.
        """
        if not (self.clipnorm or self.global_clipnorm or self.clipvalue):
            return list(gradients)
        gradients = [None if gradient is None else tf.convert_to_tensor(gradient) for gradient in gradients]
        context = tf.distribute.get_replica_context()
        replicas = context.num_replicas_in_sync if KERAS_3 and context else 1
        if replicas == 1:
            return super()._clip_gradients(gradients)
        present = [gradient for gradient in gradients if gradient is not None]
        summed = iter(context.all_reduce(tf.distribute.ReduceOp.SUM, present))
        clipped = super()._clip_gradients([None if gradient is None else next(summed) for gradient in gradients])
        return [None if gradient is None else gradient / replicas for gradient in clipped]  # summed once more later

    def update_step(self, gradient: tf.Tensor, variable: Any, learning_rate: Any = None) -> None:
        rate = self.learning_rate if learning_rate is None else learning_rate
        variable = native_variable(variable)
        m, v = self.moments(variable)
        weight, new_m, new_v = self.updated(
            tf.convert_to_tensor(variable),
            tf.cast(tf.convert_to_tensor(gradient), variable.dtype),
            tf.convert_to_tensor(m),
            tf.convert_to_tensor(v),
            rate=tf.cast(rate, variable.dtype),
            step=tf.cast(self.iterations, variable.dtype) + 1.0,
            undecayed=self.is_undecayed(variable),
        )
        m.assign(new_m)
        v.assign(new_v)
        variable.assign(weight)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["weight_decay"]
        if not KERAS_3:
            config["learning_rate"] = self._serialize_hyperparameter(self._learning_rate)
        config["undecayed_patterns"] = list(self.undecayed_patterns)
        return config


def has_addons() -> bool:
    """Whether tensorflow-addons' optimizers run here."""
    return not KERAS_3 and importlib.util.find_spec("tensorflow_addons") is not None


@functools.cache
def addons_lamb_class() -> type:
    """tensorflow-addons' LAMB, which excludes exactly the variables given to `leave_undecayed`.

    Its own exclusion is by patterns on `variable.name`, which for a layer built by hand is no more than `kernel:0`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it announces its retirement on import
        import tensorflow_addons as tfa

    @tf.keras.utils.register_keras_serializable(package="albert_tf")
    class AddonsLamb(_ExcludesVariables, tfa.optimizers.LAMB):
        bias_correction = True

        def build(self, variables: Sequence[Any]) -> None:
            self._create_all_weights(list(variables))

        def moments(self, variable: Any) -> tuple[tf.Variable, tf.Variable]:
            return self.get_slot(variable, "m"), self.get_slot(variable, "v")

        @property
        def weight_decay_rate(self) -> Any:
            return self._get_hyper("weight_decay")

        def is_undecayed(self, variable: Any) -> bool:
            if self._undecayed_keys is None:  # one made from its config: the patterns are all it has
                return not super()._do_use_weight_decay(variable)
            return super().is_undecayed(variable)

        def _do_use_weight_decay(self, variable: Any) -> bool:
            return not self.is_undecayed(variable)

        def _do_layer_adaptation(self, variable: Any) -> bool:
            return not self.is_undecayed(variable)

    return AddonsLamb


def apply_summed_gradients(optimizer: Any, gradients: Sequence[tf.Tensor], variables: Sequence[Any]) -> None:
    """Applies gradients that are the same on all replicas because they have been summed over them.

    Call it in a replica context, or outside of any strategy.
    """
    if KERAS_3:
        # apply_gradients sums over the replicas whatever it is told, so each replica gives its share of the sum.
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        if replicas > 1:
            gradients = [gradient / replicas for gradient in gradients]
        optimizer.apply_gradients(list(zip(gradients, variables)))
        return
    # The one keyword that the optimizers of Keras 2.15 and its legacy ones (tensorflow-addons) both know.
    optimizer.apply_gradients(list(zip(gradients, variables)), experimental_aggregate_gradients=False)
