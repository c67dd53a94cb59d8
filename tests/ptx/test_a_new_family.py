"""A family of instructions that nothing knows of but its own folder works in the simulator and on a GPU."""

from importlib import import_module

import numpy as np
import pytest
from cells import kernel_in

from labkit import ptx, simulate
from labkit.simulator.errors import KernelError, LaunchError

FILES = {
    "__init__.py": '''
        """Bytes in another order, and a barrier of the block."""

        from labkit.ptx.instruction import instruction
        from toy.on_lanes import Meet, Swap

        __all__ = ["meet", "swap_bytes"]


        @instruction(Swap(), needs=(8, 0))
        def swap_bytes(word):
            """The bytes of a uint32 in the opposite order."""


        @instruction(Meet(), waits=True)
        def meet():
            """Waits for all threads of the block."""
        ''',
    "on_lanes.py": """
        from numba import types

        from labkit.simulator.operands import check_count, waiting_line
        from labkit.simulator.values import Value


        class Swap:
            def translate(self, translator, node):
                check_count(translator, node, 1)
                word = translator.converted(translator.scalar(node.args[0], "a word"), types.uint32)
                return translator.temp(f"{word}.byteswap()", types.uint32)


        class Meet:
            def translate(self, translator, node):
                check_count(translator, node, 0)
                line, mask = waiting_line(translator, node), translator.mask
                translator.emit(f"if w.chunk.barrier(w, {mask}, {line}): yield ({line}, {mask}, ())")
                return Value("None", types.none)
        """,
    "on_gpu.py": """
        from numba.cuda import types

        import toy
        from labkit.ptx.intrinsics import I32, assembly, intrinsic, plain

        intrinsic(toy.meet)(plain("bar.sync 0;"))


        @intrinsic(toy.swap_bytes)
        def _swap_bytes(typing, word):
            def code(context, builder, signature, arguments):
                return assembly(builder, "prmt.b32 $0, $1, 0, 0x0123;", I32, arguments, memory=False)

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


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A kernel of the toy's instructions, by their names and by their module's."""
    (tmp_path / "toy").mkdir()
    for name, text in FILES.items():
        lines = [line.removeprefix(" " * 8) for line in text.strip("\n").splitlines()]
        (tmp_path / "toy" / name).write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    toy = import_module("toy")
    return kernel_in(KERNEL, "kernel", toy=toy, swap_bytes=toy.swap_bytes, meet=toy.meet, uint32=np.uint32)


def test_it_runs_in_the_simulator(kernel):
    x = np.arange(64, dtype=np.uint32) * 0x01020304
    trace = simulate(kernel, 1, 64, x, np.zeros(64, np.uint32))
    assert not trace.errors, trace.errors
    assert np.array_equal(trace.outputs[1], x.byteswap()[::-1])


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
