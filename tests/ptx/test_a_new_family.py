"""A family of instructions that nothing knows of but its own folder works in the simulator and on a GPU.

It brings what it asks of a program that uses it, its own checks, of the program and of what threads do, and what a
disturbed run leaves out.
"""

from importlib import import_module

import numpy as np
import pytest
from cells import kernel_in

from labkit import ptx, simulate
from labkit.simulator.disturbance import Disturbance
from labkit.simulator.errors import KernelError, LaunchError
from labkit.simulator.run import simulate_disturbed

FILES = {
    "__init__.py": '''
        """Bytes in another order, a barrier of the block, and elements that nobody may write any more."""

        from labkit.ptx.instruction import instruction
        from toy.on_lanes import TOY, Meet, Seal, Swap

        __all__ = ["meet", "seal", "swap_bytes"]


        @instruction(Swap(), needs=(8, 0))
        def swap_bytes(word):
            """The bytes of a uint32 in the opposite order."""


        @instruction(Meet(), waits=True)
        def meet():
            """Waits for all threads of the block."""


        @instruction(Seal(), family=TOY)
        def seal(array, i):
            """No thread writes `array[i]` from now on; a kernel has one such call at most."""
        ''',
    "on_lanes.py": """
        from numba import types

        from labkit.simulator import memory
        from labkit.simulator.disturbance import Disturbed
        from labkit.simulator.family import Family
        from labkit.simulator.operands import check_argument_count, resolve_element, waiting_line
        from labkit.simulator.values import Value
        from toy.findings import Sealed, check_calls

        TOY = Family(shared_states=(Sealed,), check=check_calls)
        SWAPS = Disturbed("no `toy.swap_bytes`")


        class Swap:
            def translate(self, translator, node):
                check_argument_count(translator, node, 1)
                word = translator.converted(translator.scalar(node.args[0], "a word"), types.uint32)
                return translator.temp(f"{translator.constant(swap)}(w, {word})", types.uint32)


        def swap(w, word):
            return word if w.chunk.launch.disturbance.leaves_out(SWAPS) else word.byteswap()


        class Meet:
            def translate(self, translator, node):
                check_argument_count(translator, node, 0)
                line, mask = waiting_line(translator, node), translator.mask
                translator.emit(f"if w.chunk.barrier(w, {mask}, {line}): yield ({line}, {mask}, ())")
                return Value("None", types.none)


        class Seal:
            def translate(self, translator, node):
                check_argument_count(translator, node, 2)
                subscript, array, index = resolve_element(translator, node, *node.args, ("shared",))
                translator.program.families[TOY].add(node.lineno)
                site, run = translator.site(subscript, array, "load"), translator.constant(seal)
                translator.emit(f"{run}(w, {site}, {array.code}, {translator.mask}, {index})")
                return Value("None", types.none)


        def seal(w, site, array, mask, *index):
            flat, mask = memory.flatten(w, site, array, mask, index)
            array.states[Sealed].seal(flat[w.active(mask)])
        """,
    "findings.py": '''
        import numpy as np

        from labkit.simulator.errors import KernelError
        from labkit.simulator.family import SharedState


        def check_calls(program, lines):
            if len(lines) > 1:
                raise KernelError("a kernel seals in one line, and this is another one; leave it out", max(lines))


        class Sealed(SharedState):
            """The memory that nobody may write any more."""

            def __init__(self, units):
                self._is_sealed = np.zeros(units, np.bool_)

            def seal(self, flat):
                for units in self.units(flat):
                    self._is_sealed[units] = True

            def note_read(self, w, site, array, mask, flat):
                self._note(w, site, array, mask, flat, "advice", "nobody else will write it")

            def note_write(self, w, site, array, mask, flat):
                self._note(w, site, array, mask, flat, "error", "it is sealed")

            def _note(self, w, site, array, mask, flat, severity, why):
                log = w.chunk.launch.log
                where = log.launch.sites[site]
                here = w.active(mask) & np.any([self._is_sealed.take(units) for units in self.units(flat)], axis=0)
                if here.any():
                    log.add(
                        ("sealed", where.line, where.column, where.kind),
                        int(here.sum()),
                        severity=severity,
                        kind="sealed",
                        message=f"Line {where.line}: {array.name}: {why}.",
                        site=where,
                    )
        ''',
    "on_gpu.py": """
        from numba.cuda import types

        import toy
        from labkit.ptx.intrinsics import I32, bare_instruction, emit_assembly, intrinsic

        intrinsic(toy.meet)(bare_instruction("bar.sync 0;"))


        @intrinsic(toy.seal)
        def _seal(typing, array, i):
            return types.void(array, i), lambda context, builder, signature, arguments: context.get_dummy_value()


        @intrinsic(toy.swap_bytes)
        def _swap_bytes(typing, word):
            def code(context, builder, signature, arguments):
                return emit_assembly(builder, "prmt.b32 $0, $1, 0, 0x0123;", I32, arguments, memory=False)

            return types.uint32(types.uint32), code
        """,
}
KERNEL = """
@cuda.jit(device=True)
def swapped(word):
    return toy.swap_bytes(word)

@cuda.jit
def kernel(x, out):
    s = cuda.shared.array(64, uint32)
    t = cuda.threadIdx.x
    if t < 32:
        s[t] = swapped(x[t])
    else:
        s[t] = swap_bytes(x[t])
    meet()
    out[t] = s[63 - t]
"""


SEALING = """
@cuda.jit
def kernel(x, out):
    s = cuda.shared.array(SIZE, uint32)
    b = cuda.shared.array(SIZE, uint8)
    t = cuda.threadIdx.x
    s[t] = x[t]
    meet()
    if t == 5:
        toy.seal(s, 7)
    meet()
    out[t] = s[t]
    meet()
    WRITE
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The family, from a folder of its own."""
    (tmp_path / "toy").mkdir()
    for name, text in FILES.items():
        lines = [line.removeprefix(" " * 8) for line in text.strip("\n").splitlines()]
        (tmp_path / "toy" / name).write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return import_module("toy")


@pytest.fixture
def kernel(toy):
    """A kernel of the toy's instructions, by their names and by their module's."""
    return kernel_in(KERNEL, "kernel", toy=toy, swap_bytes=toy.swap_bytes, meet=toy.meet, uint32=np.uint32)


def sealing(toy, size, write):
    """A kernel that seals an element of `s`, and goes on; arrays of size 0 begin at the same byte."""
    text, kinds = SEALING.replace("WRITE", write), dict(uint32=np.uint32, uint8=np.uint8)
    return kernel_in(text, "kernel", toy=toy, meet=toy.meet, SIZE=size, **kinds)


def test_it_runs_in_the_simulator(kernel):
    x = np.arange(64, dtype=np.uint32) * 0x01020304
    trace = simulate(kernel, 1, 64, x, np.zeros(64, np.uint32))
    assert not trace.errors, trace.errors
    assert np.array_equal(trace.outputs[1], x.byteswap()[::-1])


@pytest.mark.parametrize(
    "size, write, name",
    [(64, "s[t] = 2", "s"), (64, "s.T[t] = 2", "s"), (0, "s[t] = 2", "s"), (0, "b[4 * t] = 2", "b")],
)
def test_its_own_check_sees_what_threads_do_to_shared_memory(toy, size, write, name):
    x, out = np.ones(64, np.uint32), np.zeros(64, np.uint32)
    trace = simulate(sealing(toy, size, write), 1, 64, x, out, shared_bytes=4 * 64)
    told = [(f.severity, f.kind, f.message.partition(": ")[2], f.count) for f in trace.findings if f.kind == "sealed"]
    assert told == [
        ("error", "sealed", f"{name}: it is sealed.", 1),
        ("advice", "sealed", "s: nobody else will write it.", 1),
    ]


def test_a_disturbed_run_leaves_out_what_it_names(kernel):
    disturbance = Disturbance(import_module("toy.on_lanes").SWAPS)
    x = np.arange(64, dtype=np.uint32)
    trace = simulate_disturbed(kernel, 1, 64, x, np.zeros(64, np.uint32), disturbance=disturbance)
    assert np.array_equal(trace.outputs[1], x[::-1])
    assert disturbance.tried == "no `toy.swap_bytes`"


def test_its_own_check_sees_the_program(toy):
    made = sealing(toy, 64, "toy.seal(s, 8)")
    with pytest.raises(KernelError, match="a kernel seals in one line, and this is another one"):
        simulate(made, 1, 64, np.ones(64, np.uint32), np.zeros(64, np.uint32))


@pytest.mark.needs("numba-cuda")
@pytest.mark.needs("toolkit")
def test_it_compiles_for_a_gpu_that_has_it(kernel, tmp_path):
    from numba import types
    from test_compile import assembled

    from labkit.cuda.compiling import ptx_text

    words = (types.Array(types.uint32, 1, "C"),) * 2
    code = ptx_text(kernel, words, (8, 0))
    assert code.count("prmt.b32") == 2 and code.count("bar.sync 0;") >= 1
    assert assembled(code, (8, 0), tmp_path)[1].startswith(b"\x7fELF")
    with pytest.raises(
        LaunchError, match=r"`ptx.swap_bytes` needs a GPU of compute capability 8.0, and this one has 7.5"
    ):
        ptx_text(kernel, words, (7, 5))


@pytest.mark.parametrize("name", [name for name in ptx.__all__ if hasattr(getattr(ptx, name), "needs")])
def test_every_instruction_is_known_by_its_own_name(name):
    """What numba knows a function by, the simulator does: the function, not where it was taken from."""
    made = kernel_in(
        f"@cuda.jit\ndef kernel(x):\n    x[0] = {name}(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)\n",
        **{name: getattr(ptx, name)},
    )
    with pytest.raises(KernelError, match=rf"`{name}` takes .*, not 13"):
        simulate(made, 1, 32, np.zeros(1))
