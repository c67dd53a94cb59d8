"""Calls of all operations: an operation declares itself, and one path runs it.

>>> y = norm.layer_norm(x, weight, bias)      # `call`: checks, copies, streams, memory, results
>>> plan = labkit.plan(norm.layer_norm, x, weight, bias, y=y)  # the same, prepared once
>>> plan()
"""
