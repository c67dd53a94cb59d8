"""Mistakes that beginners make: each gets a sentence that names the line, the mistake and the remedy."""

import re

import numpy as np
import pytest
from cells import run_cell

import labkit
from labkit.simulator.errors import KernelError, LaunchError

N = 64


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    monkeypatch.setenv("LABKIT_DEVICE", "simulator")


def vector():
    return np.arange(N, dtype=np.float32)


def zeros(*shape):
    return np.zeros(shape, np.float32)


ONE = """
@cuda.jit
def kernel(x, y):
    i = cuda.grid(1)
"""
TWO = """
@cuda.jit
def kernel(A, B, C):
    row, col = cuda.grid(2)
"""


def body(start, text):
    """A kernel that begins with `start`; in `text` the wrong line ends in `#<`."""
    return start + "".join(f"    {line}\n" for line in text.strip("\n").split("\n"))


def simulate_cell(text, *arguments, grid=1, block=N):
    kernel = run_cell(text.replace("#<", ""))["kernel"]
    return labkit.simulate(kernel, grid, block, *(arguments or (vector(), zeros(N))))


def wrong_line(text):
    return next(i for i, line in enumerate(text.strip("\n").split("\n"), 1) if "#<" in line)


# The wrong kernel, the mistake and the remedy as its message words them.
REFUSED = {
    "a product of matrices": (
        body(TWO, "C[row, col] = A[row] @ B[col] #<"),
        "`@` multiplies whole matrices",
        "write a loop over k",
    ),
    "a matrix multiplied in place": (body(TWO, "A @= B #<"), "`@`", "write a loop over k"),
    "np.dot": (body(TWO, "C[row, col] = np.dot(A[row], B[col]) #<"), "`np.dot` does not work", "write a loop"),
    "append": (body(ONE, "y.append(x[i]) #<"), "cannot grow", "`y[i] = ...`"),
    "a list": (body(ONE, "found = [] #<\nfound.append(x[i])"), "a list does not exist", "cuda.local.array"),
    "a returned value": (body(ONE, "return x[i] * 2 #<"), "returns nothing", "`out[i] = ...`"),
    "a list comprehension": (
        body(ONE, "squares = [x[k] * x[k] for k in range(4)] #<\ny[i] = squares[0]"),
        "a list comprehension builds a list",
        "`for` loop",
    ),
    "a sum over a comprehension": (
        body(ONE, "y[i] = sum(x[k] for k in range(4)) #<"), "`sum` does not exist", "loop over `range`",
    ),
    "print with format": (body(ONE, "print('i = {}'.format(i)) #<"), "cannot format", "`print('x', x)`"),
    "print with an f-string": (body(ONE, "print(f'i = {i}') #<"), "cannot format", "`print('x', x)`"),
    "print with %": (body(ONE, "print('i = %d' % i) #<"), "cannot format", "`print('x', x)`"),
    "print with + and str": (body(ONE, "print('i = ' + str(i)) #<"), "cannot format", "`print('x', x)`"),
    "print with end": (body(ONE, "print(i, end='') #<"), "takes no `end`", "starts a new line"),
    "== for =": (body(ONE, "y[i] == x[i] #<"), "throws the answer away", "did you mean `=`"),
    "a value not stored": (body(ONE, "x[i] * 2 #<"), "throws it away", "store it"),
    "a float index": (body(ONE, "y[i / 2] = x[i] #<"), "an index must be a whole number", "write `i // 2`"),
    "a float index by way of a variable": (
        body(ONE, "half = i / 2\ny[i] = x[half] #<"), "`half` is float64", "use `//`",
    ),
    "a name that is not there": (body(ONE, "y[i] = x[i] * scale #<"), "`scale` is not defined", "assign it before"),
    "a function that is not imported": (
        body(ONE, "y[i] = erf(x[i]) #<"), "`erf` is not defined", "(write `from math import erf` above the function)",
    ),
    "a module that is not imported": (
        body(ONE, "y[i] = operator.add(x[i], 1) #<"), "`operator` is not defined",
        "(write `import operator` above the function)",
    ),
    "a total without a start": (
        body(ONE, "total += x[i] #<\ny[i] = total"), "`total` is read before", "`total = float32(0)`",
    ),
    **{
        f"a misspelt {name}": (body(ONE, f"t = {name}(x[i]) #<"), f"`{name}`", f"mean `{meant}`?{instead}")
        for name, meant, instead in [
            ("cuda.syncthread", "cuda.syncthreads", ")"),
            ("cuda.atomic.ad", "cuda.atomic.add", ")"),
            ("cuda.ballot", "cuda.ballot_sync", ")"),
            ("math.sqr", "math.sqrt", ")"),
            ("math.fma", "cuda.fma", ")"),
            ("math.factorail", "math.factorial", " In a kernel write `math.gamma(n + 1)`)"),
            ("np.sqr", "np.sqrt", " In a kernel write `math.sqrt(x)`)"),
            ("cuda.libdevice.sqrt_f", "cuda.libdevice.sqrtf", ")"),
            ("cuda.sincos", "cuda.libdevice.sincos", ")"),
        ]
    },
    "a name of NumPy that is not misspelt": (
        body(ONE, "t = np.outer(x, x) #<"), "`np.outer` does not work in a kernel", "write a loop over `range`",
    ),
    "threadidx": (body(ONE, "t = cuda.threadidx.x #<"), "`cuda.threadidx.x`", "did you mean `cuda.threadIdx.x`?"),
    "threadIdx without cuda": (body(ONE, "t = threadIdx.x #<"), "`threadIdx` is not defined", "`cuda.threadIdx`"),
    "threadIdx without x": (body(ONE, "y[cuda.threadIdx] = 1 #<"), "not complete", "`cuda.threadIdx.x`"),
    "threadIdx[0]": (body(ONE, "t = cuda.threadIdx[0] #<"), "instead of an index", "`cuda.threadIdx.x`"),
    "syncthreads without parentheses": (
        body(ONE, "cuda.syncthreads #<\ny[i] = x[i]"), "does nothing", "`cuda.syncthreads()`",
    ),
    "__syncthreads": (body(ONE, "__syncthreads() #<"), "`__syncthreads` is not defined", "`cuda.syncthreads`"),
    "grid without a number": (body(ONE, "j = cuda.grid() #<"), "`cuda.grid` takes one number", "1, 2 or 3"),
    "grid(1) for two names": (body(ONE, "a, b = cuda.grid(1) #<"), "a single value", "cannot be unpacked"),
    "np.zeros in a kernel": (body(ONE, "tile = np.zeros(4) #<"), "cannot make a NumPy array", "cuda.local.array"),
    "np.cumsum": (body(ONE, "y[i] = np.cumsum(x) #<"), "`np.cumsum` does not work", "write a loop"),
    "x.sum()": (body(ONE, "y[i] = x.sum() #<"), "`x.sum()`", "in a loop"),
    "A.shape()": (body(TWO, "n = A.shape() #<"), "`A.shape` is not a function", "leave the parentheses out"),
    "a slice": (body(TWO, "C[row, col] = A[row, :] #<"), "a slice of many elements", "name one, or write a loop"),
    "arithmetic of whole arrays": (body(ONE, "y = x * 2 #<"), "`x` is a whole array", "`x[i]`"),
    "a whole array stored into an element": (body(ONE, "y[i] = x #<"), "one number", "pick an element, `x[i]`"),
    "an output that is only renamed": (
        body(ONE, "if i < x.size:\n    y = x[i] #<"), "leaves the array as it was", "`y[i] = ...`",
    ),
    "a round bracket for a square one": (body(ONE, "y[i] = x(i) #<"), "not a function", "`x[...]`, with brackets"),
    "one index for a matrix": (
        body(TWO, "C[row] = A[row, col] #<"), "`C` has 2 dimensions", "give it 2 indices, not 1, such as `C[row, col]`",
    ),
    "one index for a row": (
        body(TWO, "C[row] = 0 #<"), "`C` has 2 dimensions", "or write `C[...]` with a `:` for each index left out",
    ),
    "two indices for a vector": (body(ONE, "y[i, 0] = x[i] #<"), "`y` has 1 dimension", "give it 1 index"),
    "a loop over a number": (body(ONE, "for v in 5: #<\n    y[i] += v"), "`5` is int64", "runs over `range(...)`"),
    "enumerate by itself": (body(ONE, "k = enumerate(x) #<"), "`enumerate` belongs", "into a `for` line"),
    "an undecorated function": (
        "def helper(a):\n    return a * 2\n" + body(ONE, "y[i] = helper(x[i]) #<"),
        "`helper` is an ordinary Python function",
        "`@cuda.jit(device=True)`",
    ),
    "a kernel launched by a kernel": (
        "@cuda.jit\ndef other(x, y):\n    pass\n" + body(ONE, "other[1, 64](x, y) #<"),
        "cannot launch another",
        "launch `other` after this one",
    ),
    "to_device in a kernel": (body(ONE, "d = cuda.to_device(x) #<"), "belongs to the host", "outside the kernel"),
    "a computed tile size": (
        "TILE = 16\n" + body(ONE, "s = cuda.shared.array((TILE, TILE + 1), float32) #<"),
        "the size `TILE + 1`",
        "write `SIZE = TILE + 1` above the kernel",
    ),
    "a tile without a dtype": (
        body(ONE, "s = cuda.shared.array((16, 16)) #<"), "a shape and a dtype", "((16, 16), float32)",
    ),
    "a size that is divided": (
        "N = 64\n" + body(ONE, "s = cuda.shared.array(int(N / 2), float32) #<"),
        "the size `int(N / 2)`",
        "write `SIZE = N // 2` above the kernel",
    ),
    "a dtype in quotes": (body(ONE, "s = cuda.shared.array(16, 'float33') #<"), "not a dtype", "use `float32`"),
    "a tile size from a variable": (
        body(ONE, "n = i + 16\ns = cuda.shared.array(n, float32) #<"), "the size `n`", "above the kernel",
    ),
    "a tile size from the launch": (
        body(ONE, "s = cuda.shared.array(cuda.blockDim.x, float32) #<"), "`cuda.blockDim.x`", "above the kernel",
    ),
    "a tile size from an array": (
        body(ONE, "s = cuda.local.array(x.size, float32) #<"), "`x.size`", "above the kernel",
    ),
    "recursion": (
        """
@cuda.jit(device=True)
def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1) #<
""" + body(ONE, "y[i] = factorial(i)"),
        "`factorial` calls itself",
        "write a loop",
    ),
    "try": (
        body(ONE, "try: #<\n    y[i] = x[i]\nexcept IndexError:\n    pass"),
        "exceptions do not exist",
        "test with `if`",
    ),
    "raise": (body(ONE, "if i > 3:\n    raise ValueError(i) #<"), "`i` is not", "write plain text"),
    "a global that is changed": (body(ONE, "global total #<\ntotal = 1"), "cannot change a global", "pass an array"),
    "a loop without an end": (
        body(ONE, "k = 0\nwhile k < 10: #<\n    y[i] += x[k]"), "`while k < 10` never ends", "change a variable",
    ),
    "a loop that some thread never leaves": (
        body(ONE, "k = 0\nwhile k != 10: #<\n    k += 2 + i % 2"), "was stopped", "ends in every thread",
    ),
    "a power written as in mathematics": (body(ONE, "y[i] = x[i] ^ 2 #<"), "`^` does not work", "`**`"),
    "is for numbers": (body(ONE, "if x[i] is i: #<\n    return"), "`is` asks for None", "compare numbers"),
    "a module that a kernel cannot use": (
        "import time\n" + body(ONE, "y[i] = time.time() #<"), "`time.time` is not a function for", "pass the result",
    ),
    "a misspelt function": (body(ONE, "y[i] = math.squareroot(x[i]) #<"), "`math.squareroot`", "`math.sqrt`"),
    "sqrt of another module": (body(ONE, "y[i] = cuda.sqrt(x[i]) #<"), "`cuda.sqrt`", "`math.sqrt`"),
    "the reciprocal root": (body(ONE, "y[i] = cuda.rsqrt(x[i]) #<"), "no code for `cuda.rsqrt`", "`1 / math.sqrt(x)`"),
    "sqrt without its module": (body(ONE, "y[i] = sqrt(x[i]) #<"), "`sqrt` is not defined", "`from math import sqrt`"),
    "atomicAdd as in CUDA C++": (body(ONE, "cuda.atomicAdd(y, 0, 1) #<"), "`cuda.atomicAdd`", "`cuda.atomic.add`"),
    "an atomic on an element": (
        body(ONE, "cuda.atomic.add(y[0], x[i]) #<"),
        "takes 3 arguments, not 2",
        "`cuda.atomic.add(array, index, value)`",
    ),
    "a shuffle with a width": (
        body(ONE, "y[i] = cuda.shfl_down_sync(-1, x[i], 1, 16) #<"), "takes 3 arguments, not 4",
        "`cuda.shfl_down_sync(mask, value, delta)`",
    ),
    "two kinds of value under one name": (
        body(ONE, "if i > 3:\n    v = x\nelse:\n    v = x[i]\ny[i] = v #<"), "`v` is an array", "make them the same",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", REFUSED)
def test_code_that_cannot_run_is_refused_in_a_sentence(mistake):
    text, what, remedy = REFUSED[mistake]
    arguments = (zeros(8, 8), zeros(8, 8), zeros(8, 8)) if "def kernel(A, B, C)" in text else ()
    with pytest.raises(KernelError) as refused:
        simulate_cell(text, *arguments, block=(8, 8) if arguments else N)
    message = str(refused.value)
    line = wrong_line(text)
    assert refused.value.line == line
    assert message.startswith(f"line {line}: ")
    assert what in message and remedy in message
    assert not re.search(r"[.!] [A-Z]", message) and "\n" not in message


# Launches that a GPU would refuse: the call, the mistake and the remedy.
COPY = body(ONE, "if i < x.size:\n    y[i] = x[i]")
LAUNCHES = {
    "no grid and block": ("kernel(x, y)", "without its grid and block", "kernel[grid, block](x, y)"),
    "no block": ("kernel[2](x, y)", "the blocks of the grid and the threads of a block", "kernel[grid, block](x, y)"),
    "2048 threads": ("kernel[1, 2048](x, y)", "2048 threads", "make the block smaller"),
    "64 x 64 threads": ("kernel[1, (64, 64)](x, y)", "4096 threads", "make the block smaller"),
    "a grid of 0": ("kernel[0, 64](x, y)", "the grid is 0", "at least 1"),
    "a grid of n / 16": ("kernel[64 / 16, 16](x, y)", "not 4.0", "divide with `//`"),
    "a list": ("kernel[1, 64]([1.0, 2.0], y)", "`x` is a list", "np.array(x, dtype=np.float32)"),
    "no output": ("kernel[1, 64](x)", "2 arguments (x, y), but 1 was given", "pass `y` as well"),
    "an argument too many": ("kernel[1, 64](x, y, 64)", "2 arguments (x, y), but 3 were given", "leave"),
    "text": ("kernel[1, 64]('x', y)", "`x` is a str", "NumPy arrays"),
}


@pytest.mark.parametrize("mistake", LAUNCHES)
def test_a_launch_that_cannot_run_is_refused_in_a_sentence(mistake):
    call, what, remedy = LAUNCHES[mistake]
    names = run_cell(COPY)
    with pytest.raises(LaunchError) as refused:
        eval(call, names, {"x": vector(), "y": zeros(N)})
    message = str(refused.value)
    assert what in message and remedy in message
    assert not re.search(r"[.!] [A-Z]", message) and "\n" not in message


# Kernels that run, and do something else than their author meant: the finding, the mistake and the remedy.
FOUND = {
    "a missing guard": (body(ONE, "y[i] = x[i] #<"), "bounds", "x has 64 elements", "`if i < x.size:`"),
    "a store behind the end": (
        body(ONE, "if i < x.size:\n    y[i + 1] = x[i] #<"), "bounds", "y has 64 elements", "write `i + 1 < y.size`",
    ),
    "a missing atomic": (
        body(ONE, "if i < x.size:\n    y[0] += x[i] #<"), "race", "y[0]", "`cuda.atomic.add(y, 0, x[i])`",
    ),
    "an output that is only renamed": (
        body(ONE, "y = x[i % 64] #<"), "unwritten", "leaves the array as it was", "`y[i] = ...`",
    ),
    "no store at all": (
        "\n@cuda.jit\ndef kernel(x, y): #<\n    i = cuda.grid(1)\n    if i < x.size:\n        v = x[i]\n",
        "unwritten", "never stores", "`y[i] = ...`",
    ),
    "a value given in one branch only": (
        body(ONE, "if i < 10:\n    v = x[i]\nif i < y.size:\n    y[i] = v #<"),
        "uninitialised", "reads `v`", "Give `v` a value before",
    ),
    "a tile that nobody filled": (
        "\n@cuda.jit\ndef kernel(x, y):\n    s = cuda.shared.array(64, float32)\n    i = cuda.grid(1)\n"
        "    if i < y.size:\n        y[i] = s[i % 64] #<\n",
        "uninitialised", "which nothing has written", "set its elements after line",
    ),
    "a barrier behind an if": (
        body(ONE, "if i < x.size:\n    cuda.syncthreads() #<\n    y[i] = x[i]"),
        "barrier", "never reaches it", "move it out of the `if`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", FOUND)
def test_a_kernel_that_does_something_else_gets_an_error_finding(mistake):
    text, kind, what, remedy = FOUND[mistake]
    trace = simulate_cell(text, vector(), zeros(N), grid=1, block=100)
    finding = next(f for f in trace.errors if f.kind == kind and what in f.message)
    assert finding.line == wrong_line(text)
    assert remedy in finding.message and finding.message.endswith(finding.remedy)
    assert finding.remedy or kind == "unwritten"
    assert f"ine {finding.line}" in finding.message


def test_a_swapped_row_and_column_names_the_axis_that_ends():
    text = body(TWO, "if row < A.shape[0] and col < A.shape[1]:\n    C[row, col] = A[col, row] #<")
    trace = simulate_cell(text, zeros(4, 12), zeros(4, 12), zeros(4, 12), block=(4, 12))
    (bounds,) = trace.errors
    assert (bounds.kind, bounds.line) == ("bounds", wrong_line(text))
    assert "A[4, 0], but A has shape (4, 12)" in bounds.message
    assert "`if col < A.shape[0]:`" in bounds.message


def test_a_number_that_is_changed_inside_stays_as_it_was_and_that_is_said():
    text = "\n@cuda.jit\ndef kernel(x, total):\n    i = cuda.grid(1)\n    total += x[i] #<\n"
    trace = simulate_cell(text, vector(), 0.0)
    (finding,) = trace.errors
    assert (finding.kind, finding.line) == ("unwritten", wrong_line(text))
    assert "lost at the end of the thread" in finding.message and "cuda.atomic.add(total, 0, ...)" in finding.message
    assert trace.outputs[1] == 0.0


def test_a_variable_set_in_both_branches_or_used_where_it_was_set_is_no_mistake():
    text = body(
        ONE,
        """
if i < 10:
    v = x[i]
else:
    v = x[0]
y[i] = v
if i > 20:
    w = x[i]
if i > 30:
    y[i] = w
for k in range(i % 3 + 1):
    last = k
y[i] += last
while True:
    found = x[i]
    if found > -1:
        break
y[i] += found
""",
    )
    assert simulate_cell(text).errors == ()


def test_a_loop_that_makes_no_trip_leaves_its_variables_unset():
    text = body(ONE, "for k in range(i):\n    last = k\ny[i] = last #<")
    (finding,) = simulate_cell(text).errors
    assert (finding.kind, finding.line, finding.count) == ("uninitialised", wrong_line(text), 1)
    assert finding.threads[0].thread == (0, 0, 0)
