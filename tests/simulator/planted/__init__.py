"""Planted bugs: kernels that are wrong in one way each, with the kernel that is right.

A file is a bug. Its docstring says what goes wrong on a GPU; its constants, what must be found:

FINDING     the kind of finding
ARRAY       the array it names, or None
WHO         the (block, thread) pairs it names, each an index in x or a tuple of them
SANITIZER   the tool of NVIDIA's compute-sanitizer that should see it, or None where none looks for it
GRID, BLOCK the launch, of `wrong(*arguments())` and of `right(*arguments())`

In `wrong`, `# <- here` marks the line that the finding must point at, and `# <- and here` the other line of a race.
A file may also have ALSO, another kind of error that comes with the first; HANGS = True, where on a GPU `wrong`
never ends; RIGHT_GRID and RIGHT_BLOCK, where the launch is what was wrong; and `between_launches()`, after which
`wrong` runs for a second time.
"""
