"""What the compiler made of a kernel's accesses, read from its machine code (SASS) alone.

The simulator counts what the source asks for. The compiler may ask for less: it merges four shared loads of
neighbours into one of 128 bits. An instruction's width tells how many accesses of the source it stands for, however
often the loop around it was unrolled.
"""

import re

from labkit.trace import Trace

ROOMS = {"LDG": ("global", "load"), "STG": ("global", "store"), "LDS": ("shared", "load"), "STS": ("shared", "store")}
ATOMICS = {"REDG": ("global", "atomic"), "ATOMG": ("global", "atomic")}


def widths_bytes(sass: str, opcode: str) -> list[int]:
    """Bytes a lane of each instruction of that opcode, in the order of the code: `LDG.E.128` moves 16."""
    found = re.findall(rf"\b{opcode}((?:\.\w+)*) ", sass)
    return [next((int(bits) // 8 for bits in re.findall(r"\.[US]?(8|16|64|128)\b", parts)), 4) for parts in found]


def sass_factor(sass: str, opcodes: tuple[str, ...], trace: Trace) -> float:
    """Instructions of the opcodes in the machine code, over the accesses of the source that they stand for."""
    kinds = {(ROOMS | ATOMICS)[opcode] for opcode in opcodes}
    sites = [counted for counted in trace.sites if (counted.site.space, counted.site.kind) in kinds]
    widths = [width for opcode in opcodes for width in widths_bytes(sass, opcode)]
    accesses = sum(counted.accesses for counted in sites)
    if not widths or not accesses:
        return 1.0
    bytes_an_access = sum(counted.bytes for counted in sites) / accesses
    stand_for = max(sum(widths) / bytes_an_access, len(sites))
    return len(widths) / stand_for
