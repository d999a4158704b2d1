"""Hold what a model reads of a document against the whole document, from outside the engine.

documents   documents of many shapes, with rare values, as strategies
reading     a look as a model reads it: what is shown, the notes on it, the views that they offer
statements  what a look says of the whole that is not so
oracle      the value of a view, by the stock jmespath library over plain values
offers      what is wrong with the views that a look offers
hits        what `grep` says that is not so

Nothing here calls the engine's own code, but for `ask` of reading.py, which runs a call as
`mcp-abridge explain` does. `python -m tests.fuzz looks` tries many.
"""
