"""Objects that take strings and give answers, and learn from strings with Keras' own `fit`.

`pipeline` has what they share, `learner` the Keras model that is trained; one module for each kind of task.
"""
