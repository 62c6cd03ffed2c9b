"""The tasks a model is fine-tuned on: files, labels, recipes, forms of submission. Nothing here needs TensorFlow.

`catalogue` has them by name; `task` and `examples` are what all of them are made of.
"""
