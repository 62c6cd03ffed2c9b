"""The parts of pages that a person opens in a browser: judgements, rows, overviews, plots. Nothing needs TensorFlow.

`prediction_page` and `training_page` put them together.
"""
