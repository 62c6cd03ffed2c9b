"""Instances in, answers out, for a model with any head: what scoring files and serving requests have in common.

An instance is a dict of texts, `{"text": …}` or `{"question": …, "context": …}`; an answer is a dict of JSON values.
"""
