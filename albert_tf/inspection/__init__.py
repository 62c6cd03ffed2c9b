"""The parts of pages that a person opens in a browser: judgements, rows, overviews, plots. Nothing needs TensorFlow.

`prediction_page`, `training_page` and `seeds_page` put them together.
"""
