"""Helpers of instructions: their arguments at translation, and the elements they access when a kernel runs."""

import ast
from contextlib import suppress

import numpy as np

from labkit.simulator import memory
from labkit.simulator.counters import count_plain
from labkit.simulator.errors import LaunchError, NotFixed
from labkit.simulator.lanes import intersect
from labkit.simulator.seam import types
from labkit.simulator.values import MISSING, describe

# --- when a kernel is translated ---


def check_argument_count(translator, node, count):
    """Refuse a call with another number of arguments, or with keywords."""
    written = translator.written(node.func)
    if len(node.args) != count or node.keywords:
        arguments = f"{count} argument{'s' * (count != 1)} by position" if count else "no arguments"
        translator.fail(node, f"`{written}` takes {arguments}, not {len(node.args)}")


def resolve_element(translator, node, array, index, spaces):
    """Return the subscript that two arguments of a call stand for, its array, and the code of its indices.

    `array` and `index` are the arguments' nodes; the array is in one of `spaces`.
    """
    subscript = ast.copy_location(ast.Subscript(array, index, ast.Load()), node)
    ast.fix_missing_locations(subscript)
    found, indices = translator.element(subscript)
    if found.type.space not in spaces:
        other = "use a plain index for a local one" if "global" in spaces else f"and this is a {found.type.space} one"
        translator.fail(node, f"`{translator.written(node.func)}` reaches {' and '.join(spaces)} arrays; {other}")
    return subscript, found, ", ".join(i.code for i in indices)


def constant_argument(translator, node, argument, what) -> int:
    """Return a whole number that numba knows when it compiles the kernel: a plain one, or a name for one."""
    with suppress(NotFixed):
        number = translator.size(argument)
        if type(number) is int:
            return number
    written = translator.written(argument)
    cure = "make it a whole number that is a constant of the module"
    if isinstance(argument, ast.BinOp) and translator.expression(argument).static is not MISSING:
        cure = f"write `N = {written}` above the kernel, and N here"
    raise NotFixed(f"`{written}` is {what}, which is fixed when a kernel is compiled: {cure}", node.lineno)


def integer_argument(translator, argument, what):
    """Return the value of an argument that is a whole number in each lane."""
    value = translator.scalar(argument, what)
    if not isinstance(value.type, types.Integer):
        translator.fail(argument, f"{what} is a whole number, and this is {describe(value.type)}")
    return value


def site_numbers(translator, site: str) -> list[int]:
    """Return the numbers that a site's code stands for: one per array that the access may be about."""
    numbers = translator.program.namespace.get(site)
    return [*numbers.values()] if numbers else [int(site)]


def waiting_line(translator, node) -> int:
    """Return the line of a call that waits for other warps, and flush the FLOP counts before it."""
    translator.flush_flops()
    return translator.wait_line(node)


# --- when it runs ---


def drop_negative_indices(w, site, array, mask, index):
    """Note the lanes with a negative index, which the instruction does not count from the end; return the others."""
    for axis, i in enumerate(index):
        below = w.active(mask) & (i < 0)
        if below.any():
            w.chunk.launch.log.before_array(w, site, array, below, index, axis)
            mask = intersect(mask, ~below)
            if mask is False:
                return False
    return mask


def locate_vectors(w, site, array, mask, width_bytes, index, used=None, alignment=None):
    """Return where each lane's vector of `width_bytes` begins, and the lanes whose vector is inside and aligned.

    `used` has the elements that each lane accesses, all by default; a lane with 0 may name any position. A vector
    begins at a multiple of `alignment` bytes, its own size by default.
    """
    strided = (array.strides[-1] != 1) & (array.size_value > 0)
    if not array.root.is_in_c_order or np.any(strided):  # to numba's types a row of a strided matrix is strided
        raise LaunchError(f"this instruction needs an array in C order: pass a copy, `{array.name}.copy()`")
    elements, alignment = width_bytes // array.itemsize, alignment or width_bytes
    log, active = w.chunk.launch.log, w.active
    flat, mask = memory.flatten(w, site, array, mask, index)
    if mask is False:
        return flat, mask
    reached = elements if used is None else used
    last = np.where(index[-1] < 0, index[-1] + array.shape[-1], index[-1]) + reached - 1
    outside = last >= array.shape[-1]
    if (outside & active(mask)).any():
        log.out_of_bounds(w, site, array, outside & active(mask), (*index[:-1], last))
    byte = array.address + (flat % array.elements if array.space == "shared" else flat) * array.itemsize
    misaligned = ~outside & ((byte % alignment != 0) | (array.alignment < alignment))
    if (misaligned & active(mask)).any():
        log.misaligned(w, site, array, misaligned & active(mask), index, byte, alignment)
    wrong = outside | misaligned
    if not np.any(wrong):
        return flat, mask
    right = active(mask) & ~wrong
    return np.where(wrong, 0, flat), right if right.any() else False


def locate_local_elements(w, site, array, mask, count, index, is_read=True):
    """Return where `count` adjacent elements of a thread's own array begin, and the lanes that have them all.

    The elements are written. Where `is_read`, they are read too, and an unwritten one is noted.
    """
    log, active = w.chunk.launch.log, w.active
    flat, mask = memory.flatten(w, site, array, mask, index)
    if mask is False:
        return flat, mask
    last = w.fill(np.where(index[-1] < 0, index[-1] + array.shape[-1], index[-1]) + count - 1)
    outside = last >= array.shape[-1]
    if (outside & active(mask)).any():
        log.out_of_bounds(w, site, array, outside & active(mask), (*index[:-1], last))
        flat, mask = np.where(outside, 0, flat), intersect(mask, ~outside)
        if mask is False:
            return flat, mask
    count_plain(active(mask), w.warps, w.chunk.launch.counts[site])
    offsets = flat + np.arange(count)[:, None]
    empty = ~array.written[offsets, np.arange(w.lanes)] & active(mask) & is_read
    if empty.any():
        element, lane = np.argwhere(empty)[0]
        log.uninitialised(w, site, array, flat[lane] + element, lane, int(empty.sum()))
    return flat, mask
