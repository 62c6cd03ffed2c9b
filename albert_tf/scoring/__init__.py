"""Files of any length to predictions, a block of rows at a time.

`source` gives rows, `columns` makes instances of them, `output` writes answers, `blocks` puts them together.
"""
