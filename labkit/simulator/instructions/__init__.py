"""Instructions that a module above the simulator adds to the kernel language.

`INSTRUCTIONS` maps the name in the kernel language ("ptx.load4") to how a call of it is translated: an object whose
`translate(translator, node)` writes the code that lanes run, and returns its Value.
"""

INSTRUCTIONS: dict[str, object] = {}
