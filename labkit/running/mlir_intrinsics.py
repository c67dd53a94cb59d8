"""numba_cuda_mlir's own functions for kernels, where labkit has an instruction of the same meaning.

They take pointers, `types.ptr(array)`. A pointer stands for its array here, and what it points to is the first element:
there is no arithmetic of pointers. `inline_ptx` takes the texts of INLINE alone; any other is refused, since its effect
on lanes is unknown. A translator turns a kernel's syntax tree into Python code that runs it in lockstep; each class
here translates one kind of call.
"""

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types

from labkit.ptx import (
    clusters,
    copies,
    exponentials,
    fences,
    launches,
    mbarriers,
    named_barriers,
    tensor_copies,
    vectors,
)
from labkit.ptx.instruction import instruction
from labkit.simulator.collectives import find_participants
from labkit.simulator.instruction import instruction_of
from labkit.simulator.operands import check_argument_count, constant_argument, integer_argument
from labkit.simulator.values import Array, Vector, describe

FIRST = ast.Constant(0)
LOADS, STORES = {2: vectors.load2, 4: vectors.load4}, {2: vectors.store2, 4: vectors.store4}
WHOLE_WARP = "np.uint32(0xFFFFFFFF)"
# Texts of `inline_ptx`: the instruction, and the constraints of the operands. A `#` is a number; the address of an
# mbarrier comes first.
INLINE = {
    "bar.arrive #, #;": (named_barriers.barrier_arrive, ""),
    "bar.arrive %0, %1;": (named_barriers.barrier_arrive, "r r"),
    "bar.sync #, #;": (named_barriers.barrier_sync, ""),
    "bar.sync %0, %1;": (named_barriers.barrier_sync, "r r"),
    "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;": (clusters.cluster_sync, ""),
    "cp.async.bulk.commit_group;": (tensor_copies.tma_store_commit, ""),
    "cp.async.bulk.wait_group.read #;": (tensor_copies.tma_store_wait, ""),
    "cp.async.commit_group;": (copies.cp_async_commit, ""),
    "cp.async.wait_group #;": (copies.cp_async_wait, ""),
    "ex2.approx.ftz.f32 %0, %1;": (exponentials.exp2, "=f f"),
    "fence.mbarrier_init.release.cluster;": (mbarriers.mbarrier_init_fence, ""),
    "fence.proxy.async.shared::cta;": (fences.fence_async, ""),
    "griddepcontrol.launch_dependents;": (launches.launch_release, ""),
    "griddepcontrol.wait;": (launches.launch_wait, ""),
    "mbarrier.arrive.b64 _, [%0];": (mbarriers.mbarrier_arrive, "C"),
    "mbarrier.arrive.expect_tx.b64 _, [%0], %1;": (mbarriers.mbarrier_expect, "C r"),
    "mbarrier.init.b64 [%0], %1;": (mbarriers.mbarrier_init, "C r"),
}


def _instead(translator, node, function, arguments):
    """Translate a call as one of labkit's instructions with other arguments; messages name what is written."""
    call = ast.copy_location(ast.Call(node.func, arguments, []), node)
    return translator.instruction(ast.fix_missing_locations(call), instruction_of(function))


class Pointer:
    """Call `(array)` whose value is the array."""

    def translate(self, translator, node):
        check_argument_count(translator, node, 1)
        value = translator.expression(node.args[0])
        if not isinstance(value.type, Array):
            translator.fail(node, f"a pointer points to an array here, and this is {describe(value.type)}")
        return value


@dataclass(frozen=True)
class OnBarrier:
    """Call `(pointer, number)` of an instruction on mbarriers: on the first one of an array."""

    function: Callable

    def translate(self, translator, node):
        check_argument_count(translator, node, 2)
        return _instead(translator, node, self.function, [node.args[0], FIRST, node.args[1]])


@dataclass(frozen=True)
class Elect:
    """Call that is true in one of the lanes that a mask names, the lowest; without arguments, of the whole warp."""

    operands: int

    def translate(self, translator, node):
        check_argument_count(translator, node, self.operands)
        masks = [integer_argument(translator, argument, "the mask of lanes") for argument in node.args]
        named = translator.converted(masks[0], types.uint32) if masks else WHOLE_WARP
        run, position, name = translator.constant(elect), (node.lineno, node.col_offset), node.func
        call = f"{run}(w, {position}, {translator.mask}, {translator.written(name)!r}, {named})"
        return translator.temp(call, types.boolean)


def elect(w, position, mask, call, named):
    """Return where a lane is the lowest of its group, whose lanes all take part."""
    groups = find_participants(w, position, mask, call, named)
    return groups & (~groups + np.uint32(1)) == w.lane_bit


class Barrier:
    """Call without arguments that waits for all threads of the block."""

    def translate(self, translator, node):
        return translator.syncthreads(node)


class WarpIndex:
    """Call without arguments that returns the warp's number along x."""

    def translate(self, translator, node):
        check_argument_count(translator, node, 0)
        return translator.temp("(w.threadIdx[0] // np.int32(32))", types.int32)


class VectorLoad:
    """Call `(array, index, length, alignment)` that returns a vector."""

    def translate(self, translator, node):
        check_argument_count(translator, node, 4)
        array, index, length, alignment = node.args
        length = _vector_length(translator, node, length)
        loaded = _instead(translator, node, LOADS[length], [array, index])
        _check_alignment(translator, node, alignment, loaded.type.items)
        return translator.temp(loaded.code, Vector(loaded.type.items))


class VectorStore:
    """Call `(array, index, vector, alignment)`."""

    def translate(self, translator, node):
        check_argument_count(translator, node, 4)
        array, index, vector, alignment = node.args
        if not isinstance(vector, ast.Name):
            translator.fail(vector, "give the vector to store a name in the line above: `v = ...`")
        items = getattr(translator.expression(vector).type, "items", ())
        if len(items) not in STORES:
            translator.fail(vector, "the simulator stores vectors of 2 or 4 elements, such as `cuda.float32x4`")
        _check_alignment(translator, node, alignment, items)
        fields = [ast.Attribute(vector, name, ast.Load()) for name in "xyzw"[: len(items)]]
        return _instead(translator, node, STORES[len(items)], [array, index, *fields])


def _vector_length(translator, node, length):
    number = constant_argument(translator, node, length, "the length of a vector")
    if number not in LOADS:
        translator.fail(node, f"the simulator loads vectors of 2 or 4 elements, not of {number}")
    return number


def _check_alignment(translator, node, alignment, items):
    """Refuse another alignment than the vector's size, with which the compiler may access single elements."""
    size = sum(item.bitwidth for item in items) // 8
    if constant_argument(translator, node, alignment, "an alignment") != size:
        translator.fail(node, f"the simulator moves whole vectors: their alignment is their size, {size} bytes here")


class InlinePtx:
    """Call `(text, constraint, operand, ...)`."""

    def translate(self, translator, node):
        text, *rest = node.args or [ast.Constant("")]
        words = [argument.value if isinstance(argument, ast.Constant) else None for argument in (text, *rest[::2])]
        strings = [" ".join(word.split()) for word in words if isinstance(word, str)]
        if len(strings) < len(words):
            translator.fail(node, "the text and the constraints of `inline_ptx` are strings, written out in the call")
        code, *constraints = strings
        numbers = re.findall(r"(?<=[ ,])\d+(?=[,;])", code)
        function, expected = INLINE.get(re.sub(r"(?<=[ ,])\d+(?=[,;])", "#", code), (None, ""))
        operands = rest[1::2]
        if function is None or constraints != expected.split() or len(operands) != len(constraints):
            known = ", ".join(f"`{one}`" for one in INLINE)
            translator.fail(node, f"the simulator does not know what `{code}` does to lanes; it knows {known}")
        arguments = [o for o, c in zip(operands, constraints, strict=True) if not c.startswith("=")]
        if "C" in constraints:  # a pointer: an array, then the index of the element that it points to
            arguments.insert(1, FIRST)
        return _instead(translator, node, function, arguments + [ast.Constant(int(number)) for number in numbers])


def _declared(name: str, meaning: Any, waits: bool = False) -> Callable:
    """Return a function with this meaning in kernels."""

    def function():
        pass

    function.__name__ = name
    return instruction(meaning, waits)(function)


POINTER = _declared("ptr", Pointer())
INLINE_PTX = _declared("inline_ptx", InlinePtx(), waits=True)
INTRIN = {
    "barrier": _declared("barrier", Barrier(), waits=True),
    "cluster_ctarank": clusters.cluster_rank,
    "elect_sync": _declared("elect_sync", Elect(0)),
    "elect_sync_mask": _declared("elect_sync_mask", Elect(1)),
    "fence_mbarrier_init": mbarriers.mbarrier_init_fence,
    "mbarrier_arrive_expect_tx": _declared("mbarrier_arrive_expect_tx", OnBarrier(mbarriers.mbarrier_expect)),
    "mbarrier_init": _declared("mbarrier_init", OnBarrier(mbarriers.mbarrier_init)),
    "mbarrier_try_wait": _declared("mbarrier_try_wait", OnBarrier(mbarriers.mbarrier_wait), waits=True),
    "warp_idx": _declared("warp_idx", WarpIndex()),
}
VECTOR = {"load": _declared("load", VectorLoad()), "store": _declared("store", VectorStore())}
