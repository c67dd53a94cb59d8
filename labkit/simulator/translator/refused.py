"""Constructs outside the kernel language, and what to write instead."""

import ast

REFUSED = {
    ast.MatMult: (
        "`@` multiplies whole matrices, and a thread computes one number: write a loop over k that adds the products"
    ),
    ast.ListComp: "a list comprehension builds a list, which a GPU thread cannot; write a `for` loop over `range`",
    ast.GeneratorExp: "a generator expression does not run on a GPU; write a `for` loop over `range`",
    ast.DictComp: "a dict does not exist on a GPU; use an array",
    ast.SetComp: "a set does not exist on a GPU; use an array",
    ast.List: "a list does not exist on a GPU; use `cuda.local.array(length, float32)` for a thread's own values",
    ast.Dict: "a dict does not exist on a GPU; use an array",
    ast.Set: "a set does not exist on a GPU; use an array",
    ast.JoinedStr: "an f-string does not work in a kernel; use `print('x', x)` with the values as they are",
    ast.Starred: "`*` unpacking does not work in a kernel; name each value",
    ast.NamedExpr: "`:=` does not work in a kernel; assign on a line of its own",
    ast.Yield: "a kernel cannot yield; write its result into an output array",
    ast.YieldFrom: "a kernel cannot yield; write its result into an output array",
    ast.Await: "a kernel cannot await anything",
    ast.Import: "import outside the kernel, at the top of the file or cell",
    ast.ImportFrom: "import outside the kernel, at the top of the file or cell",
    ast.Try: "exceptions do not exist on a GPU; test with `if` before the access",
    ast.With: "`with` does not work in a kernel",
    ast.Global: "a kernel cannot change a global; pass an array and write into it",
    ast.Nonlocal: "a kernel cannot change an outer variable; pass an array and write into it",
    ast.Delete: "`del` does nothing useful in a kernel; leave it out",
    ast.ClassDef: "a class does not work in a kernel",
    ast.Match: "`match` does not work in a kernel; use `if` and `elif`",
    ast.AsyncFunctionDef: "a function inside a kernel does not work; write it outside with `@cuda.jit(device=True)`",
    ast.TryStar: "exceptions do not exist on a GPU; test with `if` before the access",
}

MISPLACED = {  # nodes that run elsewhere
    ast.Lambda: "a lambda in a kernel is called, or gets a name by `f = lambda x: ...`; give it a name",
}

PYTHON_FUNCTIONS = "sorted map filter list dict any all str open input".split()
NO_PYTHON_FUNCTION = "`{name}` does not exist on a GPU; write the loop over `range` yourself"

ARRAY_METHODS = {
    "append": "an array cannot grow on a GPU: make it large enough before the launch and write `{name}[i] = ...`",
    "sum": "`{name}.sum()` would make every thread add the whole array; add the elements in a loop",
    "copy": "a thread cannot copy an array; copy the elements it needs, one by one",
    "dot": "`{name}.dot` is not available to a thread; write the loop over k that adds the products",
    "astype": "`{name}.astype` does not exist in a kernel: convert one number with `float32(...)` or `int32(...)`",
}
