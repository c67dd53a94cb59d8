"""How users call anything: an operation declares itself, and one path does the rest.

>>> y = norm.layer_norm(x, weight, bias)      # `call`: checks, copies, streams, memory, results
>>> plan = labkit.plan(norm.layer_norm, x, weight, bias, y=y)  # the same, worked out once
>>> plan()
"""
