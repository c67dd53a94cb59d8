"""Random cells that define a kernel: sentences of Python made of the kernel language's words, and known kernels spoilt.

Unlike those of `random_kernels`, they need not mean anything, and most of them are wrong somewhere.
"""

import ast
import copy
import textwrap
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from labkit.simulator import language

ROOT = Path(__file__).parents[2]
DTYPES = "float32 float64 int32 int64 int8 uint8 uint32 uint64 bool complex64 float16".split()

# What a kernel may be called with, by how many axes its use of the argument suggests.
ARRAYS = {1: "np.arange(64).astype(np.{dtype})", 2: "np.ones((8, 8), np.{dtype})", 3: "np.ones((4, 4, 4), np.{dtype})"}
NUMBERS = ["8", "np.int32(3)", "2.5", "np.float32(0.5)", "True", "-1", "0", "1 + 2j"]

# --- sentences of the kernel language, and beyond it ---

NAMES = st.sampled_from("x y z n i a b c k s t v helper N PAIR cuda math np missing".split())
TARGETS = st.sampled_from("a b c k s t v i x n".split())
LITERALS = st.sampled_from(
    "0 1 2 3 -1 31 32 64 255 0.5 1e300 1e-45 0xffffffff 2**31 2**63 2**64 10**40 True False None 2j 'text' b'x' ... "
    "math.nan () (1,) (1,2) math.inf".split()
)
CALLED = st.sampled_from(
    sorted({*language.FUNCTIONS, *language.CASTS, *language.CALLS, *language.VECTORS} | language.BUILTINS)
)
VALUES = st.sampled_from(sorted({*language.POSITIONS, *language.CONSTANTS}))
BEYOND = st.sampled_from(
    [
        "lambda v: v", "[v for v in x]", "{a: b}", "{a, b}", "[a, b]", "f'{a}'", "(a := b)", "x.__class__", "x.T",
        "helper.py_func", "x.copy()", "a.real", "a.imag", "b.x", "t[0].y", "*x", "x @ y", "a is b", "a in x",
        "np.zeros(3)", "x.dtype", "type(a)", "sum(x)", "sorted(x)", "x.sum()", "cuda.threadIdx", "print", "x.size",
        "x.shape", "x.shape[0]", "x.strides", "len(x)", "x.ndim", "cuda.cg.this_grid()", "not a", "~a", "-a", "+a",
    ]
)  # fmt: skip
BINARY = st.sampled_from("+ - * / // % ** << >> & | ^ @".split())
SIGNS = st.sampled_from([*"< <= > >= == != is in and or".split(), "not in"])


def _grown(part):
    parts = st.lists(part, max_size=3)
    joined = parts.map(", ".join)
    index = st.one_of(part, joined, st.builds("{}:{}".format, part, part), st.just(":"), st.just("::-1"))
    return st.one_of(
        st.builds("({} {} {})".format, part, BINARY, part),
        st.builds("({} {} {})".format, part, SIGNS, part),
        st.builds("({} if {} else {})".format, part, part, part),
        st.builds("{}[{}]".format, NAMES, index),
        st.builds("{}({})".format, CALLED, joined),
        st.builds("helper({}, {})".format, part, part),
        st.builds("cuda.atomic.{}({}, {})".format, st.sampled_from(sorted(language.ATOMICS)), NAMES, joined),
        st.builds("({},)".format, joined).filter(lambda text: text != "(,)"),
    )


INDICES = st.sampled_from(["i", "i % 8", "cuda.threadIdx.x", "63 - i", "i, i", "i % 8, i // 8", "0"])
EXPRESSIONS = st.recursive(
    st.one_of(NAMES, LITERALS, VALUES, BEYOND, st.builds("{}[{}]".format, st.sampled_from("xyzs"), INDICES)),
    _grown,
    max_leaves=5,
)
SPACES = st.sampled_from(["cuda.shared.array", "cuda.local.array"])
SHAPES = st.sampled_from(["64", "(8, 8)", "0", "(0,)", "n", "N", "PAIR", "(64,)", "1"])
SIMPLE = st.one_of(
    st.builds("{} = {}".format, TARGETS, EXPRESSIONS),
    st.builds("{} = {}".format, TARGETS, EXPRESSIONS),
    st.builds("{} {}= {}".format, TARGETS, BINARY, EXPRESSIONS),
    st.builds("{}[{}] = {}".format, st.sampled_from("xyzst"), INDICES, EXPRESSIONS),
    st.builds("{}[{}] {}= {}".format, st.sampled_from("xyzst"), INDICES, BINARY, EXPRESSIONS),
    st.builds("{} = {}({}, {})".format, st.sampled_from("st"), SPACES, SHAPES, st.sampled_from(DTYPES[:6])),
    st.builds("{}, {} = {}".format, TARGETS, TARGETS, EXPRESSIONS),
    st.builds("{}: int = {}".format, TARGETS, EXPRESSIONS),
    st.builds("print({})".format, EXPRESSIONS),
    st.builds("return {}".format, st.one_of(st.just(""), EXPRESSIONS)),
    EXPRESSIONS,
    st.sampled_from(["cuda.syncthreads()", "cuda.syncwarp()", "pass", "break", "continue"]),
    st.sampled_from(
        ["cuda.cg.this_grid().sync()", "del a", "global a", "assert a", "raise a", "import os", "yield a", "a.x = 1"]
    ),
)


def _indented(lines):
    return textwrap.indent(lines, "    ")


def _nested(body):
    inner = st.lists(body, min_size=1, max_size=3).map("\n".join).map(_indented)
    loop = st.builds("range({})".format, st.lists(EXPRESSIONS, min_size=1, max_size=3).map(", ".join))
    return st.one_of(
        st.builds("if {}:\n{}".format, EXPRESSIONS, inner),
        st.builds("if {}:\n{}\nelse:\n{}".format, EXPRESSIONS, inner, inner),
        st.builds("for {} in {}:\n{}".format, TARGETS, st.one_of(loop, EXPRESSIONS), inner),
        st.builds("while {}:\n{}".format, EXPRESSIONS, inner),
        st.builds("while {}:\n{}\nelse:\n{}".format, EXPRESSIONS, inner, inner),
        st.builds("with {}:\n{}".format, EXPRESSIONS, inner),
        st.builds("try:\n{}\nexcept {}:\n{}".format, inner, NAMES, inner),
        st.builds("def helper(a):\n{}".format, inner),
    )


STATEMENTS = st.recursive(SIMPLE, _nested, max_leaves=4)
BODIES = st.lists(STATEMENTS, min_size=1, max_size=6).map("\n".join)
STARTS = "i = cuda.grid(1)\na = x[i % 8]\nb = i\nc = 1.5\ns = cuda.shared.array(64, float32)\nt = (i, c)"
ARGUMENTS = st.builds(
    lambda form, dtype: form.format(dtype=dtype), st.sampled_from([ARRAYS[1], ARRAYS[1], ARRAYS[2]]),
    st.sampled_from(DTYPES),
)  # fmt: skip


@st.composite
def sentences(draw):
    """A cell with a device function and a kernel, made of the grammar above."""
    arguments = [draw(ARGUMENTS), draw(ARGUMENTS), draw(ARGUMENTS), draw(st.sampled_from(NUMBERS))]
    helper = _indented(draw(STATEMENTS)) if draw(st.booleans()) else "    pass"
    return (
        f"N = {draw(LITERALS)}\nPAIR = (4, 4)\n"
        f"@cuda.jit(device=True)\ndef helper(a, b):\n{helper}\n    return {draw(EXPRESSIONS)}\n"
        f"@cuda.jit\ndef kernel(x, y, z, n):\n{_indented(STARTS)}\n{_indented(draw(BODIES))}\n"
        f"arguments = {', '.join(arguments)}\n"
    )


# --- known kernels, spoilt ---


@cache
def known_kernels() -> list[tuple[list[ast.stmt], ast.FunctionDef]]:
    """The kernels of the package and of its tests, each with the constants and device functions of its file or cell."""
    found = []
    for folder in ("labkit", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if "cuda.jit" in text:
                tree = ast.parse(text)
                found += _kernels_of(tree)
                for node in ast.walk(tree):
                    if isinstance(node, ast.Constant) and isinstance(node.value, str) and "@cuda.jit" in node.value:
                        found += _kernels_in_text(node.value)
    return found


def _kernels_in_text(text):
    try:
        return _kernels_of(ast.parse(textwrap.dedent(text)))
    except SyntaxError:
        return []


def _kernels_of(tree):
    constants = []
    for statement in tree.body:
        match statement:
            case ast.Assign([ast.Name() | ast.Tuple()], value) if _is_constant(value, constants):
                constants.append(statement)
    functions = [s for s in ast.walk(tree) if isinstance(s, ast.FunctionDef) and _decorator(s) and _is_plain(s)]
    device = [f for f in functions if "device" in _decorator(f)]
    return [(constants + device, f) for f in functions if "device" not in _decorator(f)]


def _is_constant(value, constants):
    """Is it made of numbers and of constants before it alone?"""
    targets = [node for statement in constants for node in ast.walk(statement.targets[0])]
    known = {node.id for node in targets if isinstance(node, ast.Name)}
    plain = (ast.Constant, ast.Tuple, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context)
    return all(isinstance(n, plain) or isinstance(n, ast.Name) and n.id in known for n in ast.walk(value))


def _is_plain(function):
    """Has it nothing that Python would run as the cell defines it?"""
    given = [*function.args.defaults, *(a.annotation for a in function.args.args), function.returns]
    return not any(given)


def _decorator(function):
    return next((text for d in function.decorator_list if (text := ast.unparse(d)).startswith("cuda.jit")), "")


def _axes(kernel, name):
    """Guess the number of axes of the argument from how the kernel indexes it; 0 for a number."""
    axes = 0
    for node in ast.walk(kernel):
        match node:
            case ast.Subscript(ast.Name(id), index) if id == name:
                axes = max(axes, len(index.elts) if isinstance(index, ast.Tuple) else 1)
            case ast.Call(_, [ast.Name(id), index, *_]) if id == name:
                axes = max(axes, len(index.elts) if isinstance(index, ast.Tuple) else 1)
            case ast.Assign([ast.Tuple(names)], ast.Attribute(ast.Name(id), "shape")) if id == name:
                axes = max(axes, len(names))
            case ast.Attribute(ast.Name(id), "size" | "shape") if id == name:
                axes = max(axes, 1)
    return axes


@st.composite
def mutants(draw):
    """A cell with a known kernel that was changed in one to four places."""
    before, kernel = draw(st.sampled_from(known_kernels()))
    kernel = copy.deepcopy(kernel)
    for _ in range(draw(st.integers(1, 4))):
        draw(st.sampled_from(CHANGES))(draw, kernel)
    kernel.decorator_list = [ast.parse("cuda.jit", mode="eval").body]
    arguments = []
    for argument in kernel.args.args:
        axes = min(3, _axes(kernel, argument.arg))
        array = ARRAYS[axes].format(dtype=draw(st.sampled_from(DTYPES))) if axes else None
        arguments.append(array or draw(st.sampled_from(NUMBERS)))
    kernel.name = "kernel"
    cell = ast.Module([*before, kernel], [])
    return f"{ast.unparse(ast.fix_missing_locations(cell))}\narguments = {', '.join([*arguments, ''])}\n"


def _blocks(kernel):
    """Every list of statements in the kernel that holds any."""
    fields = [getattr(n, field, None) for n in ast.walk(kernel) for field in ("body", "orelse")]
    return [block for block in fields if isinstance(block, list) and block]


def _place(draw, kernel):
    block = draw(st.sampled_from(_blocks(kernel)))
    return block, draw(st.integers(0, len(block) - 1))


def _delete(draw, kernel):
    block, at = _place(draw, kernel)
    block[at : at + 1] = [ast.Pass()] if len(block) == 1 else []


def _duplicate(draw, kernel):
    block, at = _place(draw, kernel)
    block.insert(draw(st.integers(0, len(block))), copy.deepcopy(block[at]))


def _swap(draw, kernel):
    block, at = _place(draw, kernel)
    other, there = _place(draw, kernel)
    block[at], other[there] = copy.deepcopy(other[there]), copy.deepcopy(block[at])


def _wrap(draw, kernel):
    block, at = _place(draw, kernel)
    test = draw(EXPRESSIONS)
    head = draw(st.sampled_from(["if {}: pass", "while {}: pass", "for k in range({}): pass"]))
    for outer in _parsed(head.format(test)):
        outer.body = [block[at]]
        block[at] = outer


def _insert(draw, kernel):
    block, at = _place(draw, kernel)
    block[at:at] = _parsed(draw(STATEMENTS))


def _parsed(text):
    try:
        return ast.parse(text).body
    except SyntaxError:
        return []


def _expressions(kernel):
    """Yield the position of each expression: (its parent, the field, its index in a list or None)."""
    for parent in ast.walk(kernel):
        if isinstance(parent, ast.arguments):
            continue
        for field, value in ast.iter_fields(parent):
            if isinstance(value, ast.expr) and not isinstance(getattr(value, "ctx", None), ast.Store):
                yield parent, field, None
            elif isinstance(value, list) and field != "decorator_list":
                for number, item in enumerate(value):
                    if isinstance(item, ast.expr) and not isinstance(getattr(item, "ctx", None), ast.Store):
                        yield parent, field, number


def _replace(draw, kernel):
    places = list(_expressions(kernel))
    if not places:
        return
    parent, field, number = draw(st.sampled_from(places))
    other, theirs, there = draw(st.sampled_from(places))
    new = getattr(other, theirs) if there is None else getattr(other, theirs)[there]
    if draw(st.booleans()):
        text = draw(EXPRESSIONS)
        new = next((s.value for s in _parsed(text) if isinstance(s, ast.Expr)), new)
    if number is None:
        setattr(parent, field, copy.deepcopy(new))
    else:
        getattr(parent, field)[number] = copy.deepcopy(new)


def _change_literal(draw, kernel):
    literals = [n for n in ast.walk(kernel) if isinstance(n, ast.Constant)]
    if literals:
        value = st.sampled_from([0, 1, -1, 2, 3, 31, 32, 33, 2**31, 2**63, 2**64, 0.5, 1e308, True, None, "text", 1j])
        draw(st.sampled_from(literals)).value = draw(value)


def _change_operator(draw, kernel):
    found = [n for n in ast.walk(kernel) if isinstance(n, ast.BinOp | ast.AugAssign)]
    if found:
        operators = [ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.BitAnd]
        draw(st.sampled_from(found)).op = draw(st.sampled_from(operators))()


def _rename(draw, kernel):
    names = [n for n in ast.walk(kernel) if isinstance(n, ast.Name)]
    if names:
        draw(st.sampled_from(names)).id = draw(st.sampled_from(sorted({n.id for n in names} | {"missing", "np"})))


def _rename_attribute(draw, kernel):
    found = [n for n in ast.walk(kernel) if isinstance(n, ast.Attribute)]
    if found:
        known = sorted({name.split(".")[-1] for name in language.KNOWN})
        draw(st.sampled_from(found)).attr = draw(st.sampled_from(known))


CHANGES = [
    _delete, _duplicate, _swap, _wrap, _insert, _replace, _replace, _change_literal, _change_operator, _rename,
    _rename_attribute,
]  # fmt: skip
