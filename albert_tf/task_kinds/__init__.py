"""How each kind of task is learned: examples to sequences, logits to losses and to answers, answers to scores.

One module for each kind of head, all with the interface of `task_kind.TaskKind`; `catalogue` makes the one for a task.
"""
