"""Every pair that the kernel language allows: a syntax node or a function, and a type of number; and how to write it.

The pairs come from the language's own tables, and from numba's typing of each. The dtype of a call is that of its
first argument, after numba's conversion; that of an operator, of both sides.
"""

import builtins
import cmath
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numba import types

from labkit.simulator import numba_types
from labkit.simulator.functions.bits import SELECTED
from labkit.simulator.language import ATOMICS, CONSTANTS, FUNCTIONS, NO_EFFECT, POSITIONS, SCALARS, commutes
from labkit.simulator.translator.collectives import MATCH_SIGNATURES, SHUFFLED_TYPES
from labkit.simulator.translator.operators import BINARY, COMPARE, REFUSED_IN_PLACE
from random_kernels.tolerance import EXACT, tolerance

KINDS = {str(kind): kind for kind in SCALARS.values()}  # numba's name for each type: the type
HALVES = {types.float16, numba_types.bfloat16}  # numba has them on a GPU alone
HELD = [kind for kind in KINDS.values() if kind != numba_types.bfloat16]  # NumPy has no array of those
WHOLE = [kind for kind in KINDS.values() if isinstance(kind, types.Integer)]
HINTED = [kind for kind in HELD if isinstance(kind, types.Integer | types.Float)]


@dataclass(frozen=True)
class Use:
    """A pair, and what writes a use of it.

    `write(writer, *arguments)` adds lines. `where` says what it needs: "thread", for what numba compiles for a CPU as
    well; "gpu", for what it does not; "block", for what all threads of the block have to do together.
    """

    what: str
    dtype: str
    write: Callable
    arguments: tuple
    where: str = "thread"

    @property
    def pair(self):
        return self.what, self.dtype


# --- what writes them ---


def keep(w, text, result, within=EXACT):
    """Puts a value into a new variable, and into an element of the output for each of its numbers."""
    name = w.new()
    w.line(f"{name} = {text}")
    w.keep(name, result, within)


def binary(w, kind, sign, result, within):
    right = f"({w.value(kind)})" if sign not in ("<<", ">>", "**", "//", "%", "/") else w.small(kind)
    keep(w, f"{w.value(kind)} {sign} {right}", result, within)


def augmented(w, kind, sign, result, within):
    name = w.new()
    right = w.value(kind) if sign not in ("<<", ">>", "**", "//", "%", "/") else w.small(kind)
    w.line(f"{name} = {w.value(kind)}")
    w.line(f"{name} {sign}= {right}")
    w.keep(name, result, within)


def compared(w, kind, sign):
    chained = f" {sign} {w.value(kind)}" if w.rng.random() > 0.7 else ""
    keep(w, f"{w.value(kind)} {sign} {w.value(kind)}{chained}", types.boolean)


def signed(w, kind, sign, result):
    keep(w, f"{sign}({w.value(kind)})", result)


def cast(w, source, target):
    whole = isinstance(source, types.Integer | types.Boolean) or not isinstance(target, types.Integer)
    keep(w, f"{w.cast(target)}({w.value(source) if whole else w.small(source)})", target)


def call(w, path, kinds, result):
    first = w.small if "gamma" in path or "uint" in path else w.value
    given = [(w.small if position else first)(kind) for position, kind in enumerate(kinds)]
    like = "hypot" if path == "abs" and isinstance(kinds[0], types.Complex) else path
    keep(w, f"{w.callable(path)}({', '.join(given)})", result, tolerance(like, result))


def conditional(w, kind):
    keep(w, f"{w.value(kind)} if {w.condition(0)} else {w.value(kind)}", kind)


def either(w, kind, word):
    keep(w, f"{w.value(kind)} {word} {w.value(kind)}", kind)


def assigned(w, kind):
    keep(w, w.value(kind), kind)


def annotated(w, kind):
    name = w.new()
    w.line(f"{name}: float = {w.value(kind)}")
    w.keep(name, kind)


def unpacked(w, kind):
    first, second = w.new(), w.new()
    w.line(f"{first}, {second} = {w.value(kind)}, {w.value(kind)}")
    w.line(f"{first}, {second} = {second}, {first}")
    w.keep(first, kind)
    w.keep(second, kind)


def contained(w, kind):
    keep(w, f"{w.value(kind)} in ({w.value(kind)}, {w.value(kind)})", types.boolean)


def tuples_compared(w, kind):
    keep(w, f"({w.value(kind)}, {w.value(kind)}) == ({w.value(kind)}, {w.value(kind)})", types.boolean)


def tuple_entry(w, kind):
    keep(w, f"({w.value(kind)}, {w.value(kind)}, {w.value(kind)})[{w.choose(('i % 3', '-1 - i % 3'))}]", kind)


def tuple_sum(w, kind):
    name = w.new()
    w.line(f"{name} = ({w.value(kind)},) + ({w.value(kind)}, {w.value(kind)})")
    w.keep(f"{name}[{w.choose('012')}]", kind)


def branched(w, kind):
    name = w.new()
    w.line(f"if {w.value(kind)}:")
    w.line(f"    {name} = i + 1")
    w.line("else:")
    w.line(f"    {name} = i - 1")
    w.keep(name, types.int64)


def repeated(w, kind):
    name, left = w.new(), w.new()
    w.line(f"{name} = i + 0")
    w.line(f"{left} = {w.small(kind)}")
    w.line(f"while {left}:")
    w.line(f"    {left} = {w.cast(kind)}(0)")
    w.line(f"    {name} += 1")
    w.keep(name, types.int64)


def looped(w, kind, over, target):
    """A `for` loop that keeps what it meets last; `else` runs where no trip breaks."""
    name, count = w.new(), w.new()
    w.line(f"{name} = {w.value(kind)}")
    w.line(f"{count} = i - i")
    w.line(f"for {target.format(count + 'x')} in {over(w)}:")
    w.line(f"    {name} = {count}x")
    w.line(f"    {count} += 1")
    if w.rng.random() > 0.5:
        w.line(f"    if {w.condition(0)}:")
        w.line("        break")
        w.line("else:")
        w.line(f"    {count} += 7")
    w.keep(name, kind)
    w.keep(count, types.int64)


def returned(w, kind):
    """A device function with two returns."""
    name = w.function("first, second, test", "    if test:\n        return first\n    return second")
    keep(w, f"{name}({w.value(kind)}, {w.value(kind)}, {w.condition(0)})", kind)


def returned_pair(w, kind):
    name = w.function("first, second", "    return second, first")
    keep(w, f"{name}({w.value(kind)}, {w.value(kind)})", types.Tuple([kind, kind]))


def passed_on(w, kind):
    """A function given to a function."""
    inner = w.function("first", "    return first")
    outer = w.function("given, first", "    return given(first)")
    keep(w, f"{outer}({inner}, {w.value(kind)})", kind)


def loaded(w, kind, rank):
    keep(w, f"{w.array(kind, rank)}[{', '.join([w.place(), '1', '-1'][:rank])}]", kind)


def loaded_from_the_end(w, kind):
    keep(w, f"{w.array(kind, 1)}[{w.choose(('-1', '-(i % 3) - 1'))}]", kind)


def stored(w, kind, rank):
    array = w.output(kind, rank)
    w.line(f"{array}[{', '.join(['i', '1', '0'][:rank])}] = {w.value(kind)}")


def updated(w, kind):
    array = w.output(kind, 1)
    w.line(f"{array}[i] = {w.value(kind)}")
    w.line(f"{array}[i] += {w.small(kind)}")


def sliced(w, kind, text, rank):
    name = w.new()
    w.line(f"{name} = {w.array(kind, rank)}{text}")
    keep(w, f"{name}[{w.choose(('0', '1', '-1', 'i % 2'))}]", kind)
    keep(w, f"{name}.shape[0] + {name}.size", types.int64)


def reshaped(w, kind):
    keep(w, f"{w.array(kind, 2)}.reshape({w.choose(('48', '-1'))})[i % 48]", kind)


def own_memory(w, kind):
    array = w.allocate("local", kind, 3)
    w.line(f"{array}[0] = {w.value(kind)}")
    w.line(f"{array}[1] = {w.value(kind)}")
    keep(w, f"{array}[{w.choose(('0', '1', '-3', 'i % 2'))}]", kind)


def fixed_memory(w, kind):
    keep(w, f"{w.constants(kind)}[{w.place()}]", kind)


def shared_memory(w, kind, dynamic):
    """Each thread writes its element, and reads a neighbour's after a barrier."""
    array = w.dynamic(kind) if dynamic else w.allocate("shared", kind, w.BLOCK)
    w.line(f"{array}[t] = {w.value(kind)}")
    w.line("cuda.syncthreads()")
    neighbour = w.choose(("t ^ 1", f"{w.BLOCK - 1} - t", f"(t + 33) % {w.BLOCK}", "t - 1", "t"))
    keep(w, f"{array}[{neighbour}]", kind)
    w.line("cuda.syncthreads()")


def atomic(w, kind, name, space):
    """On an element of one's own, whose old value is kept, or on one of a few, where the order makes no difference."""
    array = w.counters(kind) if space == "global" else w.allocate("shared", kind, w.BLOCK)
    own = "i" if space == "global" else "t"
    if space == "shared":
        w.line(f"{array}[t] = {w.cast(kind)}(3)")
        w.line("cuda.syncthreads()")
    values = ", ".join([w.small(kind)] * (2 if "cas" in name or "swap" in name else 1))
    if name == "compare_and_swap":
        part = w.new()
        w.line(f"{part} = {array}[{own}:]")
        keep(w, f"cuda.atomic.{name}({part}, {values})", kind)
    elif commutes(name, kind) and w.rng.random() > 0.5:
        w.line(f"cuda.atomic.{name}({array}, {own} % 3, {values})")
    else:
        keep(w, f"cuda.atomic.{name}({array}, {own}, {values})", kind)
    if space == "shared":
        w.line("cuda.syncthreads()")
        keep(w, f"{array}[{w.BLOCK - 1} - t]", kind)
        w.line("cuda.syncthreads()")


def counted_barrier(w, kind, name):
    keep(w, f"cuda.{name}({w.choose((w.value(kind), w.small(kind)))})", types.int32)


def shuffled(w, kind, name):
    operand = w.choose(("1", "16", "i % 32", "31") if name == "shfl_sync" else ("1", "16", "3"))
    keep(w, f"cuda.{name}(0xFFFFFFFF, {w.value(kind)}, {operand})", kind)


def voted(w, kind, name):
    result = types.int32 if name == "ballot_sync" else types.boolean
    predicate = f"{w.value(kind)}" if kind != types.boolean else w.condition(0)
    if w.rng.random() > 0.5:  # in a branch of their own, where the lanes that come are named
        mask, name_kept = w.new(), w.new()
        w.line(f"{name_kept} = {'i < 0' if result == types.boolean else 'int32(0)'}")
        w.line(f"{mask} = cuda.ballot_sync(0xFFFFFFFF, t % 3 != 0)")
        w.line("if t % 3 != 0:")
        w.line(f"    {name_kept} = cuda.{name}({mask}, {predicate})")
        w.keep(name_kept, result)
    else:
        keep(w, f"cuda.{name}(0xFFFFFFFF, {predicate})", result)


def matched(w, kind, name):
    result = types.int32 if name == "match_any_sync" else types.Tuple([types.int32, types.boolean])
    keep(w, f"cuda.{name}(0xFFFFFFFF, {w.small(kind)})", result)


def selected(w, kind):
    keep(w, f"cuda.selp({w.condition(0)}, {w.value(kind)}, {w.value(kind)})", kind)


def extreme(w, kind, name):
    keep(w, f"{name}({w.value(kind)}, {w.value(kind)})", kind)


def hinted(w, kind, name):
    if name.startswith("cuda.ld"):
        keep(w, f"{name}({w.array(kind, 1)}, {w.place()})", kind)
    else:
        w.line(f"{name}({w.output(kind, 1)}, i, {w.value(kind)})")


def plain(w, text, result):
    keep(w, text, result)


def alone(w, text):
    w.line(text)


# --- which there are ---


# What numba computes otherwise on a CPU: a GPU's remainders come from a rounded quotient, numba takes the larger half
# of uint64 for negative numbers in a root, and its gamma functions are far off where their logarithm is near 0.
OTHERWISE_ON_A_CPU = {
    *(("divmod", kind) for kind in ("float32", "float64")),
    *((f"math.{name}", str(kind)) for name in ("gamma", "lgamma") for kind in KINDS.values()),
    ("math.hypot", "uint64"),
}
# What numba-cuda 0.30 has a type for, and no code.
NO_CODE = {
    *((what, kind) for what in ("BoolOp And", "BoolOp Or", "If", "While") for kind in ("float16", "bfloat16")),
    *((f"{space} array", "bfloat16") for space in ("local", "shared", "dynamic shared")),
    *(("cuda.ffs", kind) for kind in ("int8", "int16", "uint8", "uint16")),
    *(("bfloat16()", kind) for kind in ("int8", "uint8")),
    ("float16()", "bfloat16"),
    ("bool()", "float16"),
}


# What numba-cuda compiles, and the simulator refuses with the rest of what asks for the truth of a float16.
REFUSED = {("UnaryOp Not", "float16")}


def uses() -> list[Use]:
    """All uses that run on a GPU and here, in the order of the tables."""
    return [use for use in typed_uses() if use.pair not in NO_CODE | REFUSED]


def typed_uses() -> Iterator[Use]:
    """Those that numba has types for."""
    yield from _operators()
    yield from _nodes()
    yield from _casts()
    yield from _memory()
    yield from _functions()
    yield from _intrinsics()


def _where(*kinds):
    return "gpu" if HALVES.intersection(kinds) else "thread"


def _operators():
    for name, kind in KINDS.items():
        where = _where(kind)
        for op, (function, sign) in BINARY.items():
            resolved = numba_types.resolve(function, (kind, kind))
            if resolved is not None:
                real = isinstance(resolved[0], types.Float) or resolved[0] in HALVES
                remainder = real and op in ("Mod", "FloorDiv")  # a GPU's come from a rounded quotient
                within = tolerance("pow", resolved[0]) if op == "Pow" or isinstance(kind, types.Complex) else EXACT
                written = (kind, sign, resolved[0], within)
                place = "gpu" if remainder else where
                yield Use(f"BinOp {op}", name, binary, written, place)
                if (op, kind) not in REFUSED_IN_PLACE:
                    yield Use(f"AugAssign {op}", name, augmented, written, place)
        for op, (function, sign) in COMPARE.items():
            resolved = numba_types.resolve(function, (kind, kind))
            if resolved is not None and not (isinstance(resolved[1][0], types.Complex) and sign not in ("==", "!=")):
                yield Use(f"Compare {op}", name, compared, (kind, sign), where)
        for op, sign in (("USub", "-"), ("UAdd", "+"), ("Invert", "~")):
            resolved = numba_types.resolve(SIGNS[op], (kind,))
            if resolved is not None:
                yield Use(f"UnaryOp {op}", name, signed, (kind, sign, resolved[0]), where)


def _nodes():
    for name, kind in KINDS.items():
        where = _where(kind)
        for what, write in NODES.items():
            yield Use(what, name, write, (kind,), where)
        if numba_types.resolve(bool, (kind,)) is not None:
            for what, write in TESTS.items():
                yield Use(what, name, write, (kind,), where)
        for what, over, target, allowed in LOOPS:
            if kind in allowed:
                yield Use(what, name, looped, (kind, partial(over, kind), target), where)


def _casts():
    for source in KINDS.values():
        for name, target in KINDS.items():
            if converts(source, target):
                yield Use(f"{name}()", str(source), cast, (source, target), _where(source, target))


def converts(source, target) -> bool:
    """Does a call of the target's name take the source?"""
    if numba_types.bfloat16 in (source, target):
        to = target.can_convert_from(None, source) if target == numba_types.bfloat16 else None
        return source == target or (to or source.can_convert_to(None, target)) is not None
    if isinstance(source, types.Complex):
        return isinstance(target, types.Complex | types.Boolean)
    return numba_types.resolve(types.NumberClass(target), (source,)) is not None


def _memory():
    for name, kind in KINDS.items():
        own = Use("local array", name, own_memory, (kind,), "gpu")
        shared = Use("shared array", name, shared_memory, (kind, False), "block")
        dynamic = Use("dynamic shared array", name, shared_memory, (kind, True), "block")
        yield from (own, shared, dynamic)
        if kind not in HELD:
            continue
        where = _where(kind)
        yield Use("constant array", name, fixed_memory, (kind,), "gpu")
        for rank in (1, 2, 3):
            yield Use(f"load {rank}-D", name, loaded, (kind, rank), where)
            yield Use(f"store {rank}-D", name, stored, (kind, rank), where)
        yield Use("negative index", name, loaded_from_the_end, (kind,), where)
        yield Use("AugAssign element", name, updated, (kind,), where)
        yield Use("reshape", name, reshaped, (kind,), where)
        for text, rank in SLICES.items():
            yield Use(f"slice {text}", name, sliced, (kind, text, rank), where)


def _functions():
    for path, function in FUNCTIONS.items():
        for name, (kinds, result) in signatures(function).items():
            yield Use(path, name, call, (path, kinds, result), _function_place(path, kinds, result))


def _function_place(path, kinds, result):
    if path.startswith("cuda.") or HALVES.intersection((*kinds, result)):
        return "gpu"
    if (path, str(kinds[0])) in OTHERWISE_ON_A_CPU:
        return "gpu"
    module, _, name = path.rpartition(".")
    python = getattr({"math": math, "cmath": cmath, "np": np, "": builtins}[module], name, None)
    return "thread" if python and numba_types.resolve(python, kinds) else "gpu"


def signatures(function) -> dict:
    """For the dtype of a first argument, as the function takes it: (all arguments' types, result type)."""
    found = {}
    for case in function.cases:
        found.setdefault(str(case.args[0]), (case.args, case.return_type))
    for kind in KINDS.values():
        for count in (1, 2, 3):
            resolved = function.resolve((kind,) * count)
            if resolved is not None and resolved[1][0] == kind and len(resolved[1]) == count:
                found.setdefault(str(kind), (resolved[1], resolved[0]))
    return found


def _intrinsics():
    for name, (_, allowed) in ATOMICS.items():
        for kind in allowed:
            yield Use(f"atomic.{name} global", str(kind), atomic, (kind, name, "global"), "gpu")
            yield Use(f"atomic.{name} shared", str(kind), atomic, (kind, name, "shared"), "block")
    for kind in WHOLE:
        for name in ("syncthreads_count", "syncthreads_and", "syncthreads_or"):
            yield Use(f"cuda.{name}", str(kind), counted_barrier, (kind, name), "block")
    for kind in SHUFFLED_TYPES:
        for name in ("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync"):
            yield Use(f"cuda.{name}", str(kind), shuffled, (kind, name), "block")
    for kind in (*WHOLE, types.boolean):
        for name in ("all_sync", "any_sync", "eq_sync", "ballot_sync"):
            yield Use(f"cuda.{name}", str(kind), voted, (kind, name), "block")
    for kind in KINDS.values():
        if numba_types.resolve_overload(MATCH_SIGNATURES, (types.int32, kind)) is not None:
            for name in ("match_any_sync", "match_all_sync"):
                yield Use(f"cuda.{name}", str(kind), matched, (kind, name), "block")
    for kind in KINDS.values():
        if isinstance(kind, types.Integer | types.Float | types.Boolean):
            for name in ("min", "max"):
                yield Use(name, str(kind), extreme, (kind, name), _where(kind))
        if str(kind) in SELECTED:
            yield Use("cuda.selp", str(kind), selected, (kind,), "gpu")
    for kind in HINTED:
        for name in [f"cuda.ld{h}" for h in "ca cg cs lu cv".split()] + [f"cuda.st{h}" for h in "cg cs wb wt".split()]:
            yield Use(name, str(kind), hinted, (kind, name), "gpu")
    for name, (kind, _) in POSITIONS.items():
        yield Use(name, str(kind), plain, (name, kind), "gpu")
    for name in CONSTANTS:
        yield Use(name, "float64", plain, (f"{name} * i", types.float64))
    for text, kind in (("cuda.gridsize(1)", types.int64), ("cuda.lanemask_lt()", types.uint32)):
        yield Use(text.partition("(")[0], str(kind), plain, (text, kind), "gpu")
    yield Use("cuda.activemask", "uint32", plain, ("cuda.activemask()", types.uint32), "block")
    for text in ("cuda.syncthreads()", "cuda.syncwarp()"):
        yield Use(text.partition("(")[0], "none", alone, (text,), "block")
    for name in sorted(NO_EFFECT):
        argument = "uint32(20)" if name == "cuda.nanosleep" else ""
        yield Use(name, "none", alone, (f"{name}({argument})",), "gpu")


SIGNS = {"USub": numba_types.operator.neg, "UAdd": numba_types.operator.pos, "Invert": numba_types.operator.invert}
NODES = {
    "Assign": assigned,
    "AnnAssign": annotated,
    "Tuple": unpacked,
    "Compare In": contained,
    "Compare tuples": tuples_compared,
    "Tuple sum": tuple_sum,
    "tuple entry": tuple_entry,
    "IfExp": conditional,
    "Return": returned,
    "Return Tuple": returned_pair,
    "function as argument": passed_on,
}
TESTS = {
    "BoolOp And": lambda w, kind: either(w, kind, "and"),
    "BoolOp Or": lambda w, kind: either(w, kind, "or"),
    "UnaryOp Not": lambda w, kind: signed(w, kind, "not ", types.boolean),
    "If": branched,
    "While": repeated,
}
COUNTED = [kind for kind in WHOLE if numba_types.resolve(range, (kind,))[0].dtype == kind]
LOOPS = (
    ("For range", lambda kind, w: f"range({w.small(kind)})", "{}", COUNTED),
    ("For array", lambda kind, w: w.array(kind, 1), "{}", HELD),
    ("For tuple", lambda kind, w: f"({w.value(kind)}, {w.value(kind)})", "{}", KINDS.values()),
    ("For enumerate", lambda kind, w: f"enumerate({w.array(kind, 1)})", "_, {}", HELD),
    ("For zip", lambda kind, w: f"zip({w.array(kind, 1)}, range(5))", "{}, _", HELD),
)
SLICES = {"[2:9]": 1, "[::-2]": 1, "[1]": 2, "[i % 3, :]": 2, "[:, 1]": 2, "[1, ..., 0]": 3}  # and the rank
