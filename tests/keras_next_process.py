"""What test_keras.py runs in a new process: loads a saved model, predicts, and trains on from where it stood.

python -m tests.keras_next_process MODEL.keras BATCH.npz OUTPUT.npz
"""

from __future__ import annotations

import sys

import numpy as np
import tensorflow as tf

import albert_tf  # noqa: F401  (after TensorFlow it makes its classes known to Keras)

if __name__ == "__main__":
    model_file, batch_file, output_file = sys.argv[1:]
    batch = dict(np.load(batch_file))
    labels = batch.pop("labels")
    model = tf.keras.models.load_model(model_file)
    predictions = model.predict(batch, verbose=0)
    losses = [float(np.ravel(model.train_on_batch(batch, labels))[0]) for _ in range(2)]
    np.savez(output_file, predictions=predictions, losses=losses)
