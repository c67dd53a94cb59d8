"""Limits of the time and memory that a launch may take on this machine: beyond them it is refused or stopped.

Work is counted in units of 10 to 50 microseconds. An iteration of a loop or a call of a function is one unit, and an
access to memory in it one to four more; lanes that run together count by the thousand. So a kernel stops at the same
point on every machine.
"""

# --- the kernel's source ---
MAX_CHARACTERS = 200_000
MAX_VISITS = 100_000  # parts of the source that the translator may visit, counting repeated visits
MAX_TEXT = 5_000_000  # characters of generated code
MAX_FUNCTIONS = 300  # device functions, counted per combination of argument types
MAX_ENTRIES = 1000  # per tuple

# --- the launch ---
MAX_ARGUMENT_BYTES = 8 << 30  # of one array
MAX_LANES = 1 << 28  # threads in all
MAX_LANES_TOGETHER = 1 << 21  # threads that wait for one another, all of which must be simulated at once
MAX_CHUNK_BYTES = 1 << 29  # shared and local memory, with its shadow, of the blocks simulated at once
MAX_CHUNK_WORK = 300_000
MAX_WORK = 5_000_000
PATIENCE = 20  # times as much work is done without checks, in a launch with a time limit for them
CHUNK_WORK = 50  # of starting a chunk
WORK_BYTES = 50_000  # of shared and local memory that take one unit to clear
WORK_LANES = 4096  # lanes that count as one more
ACCESS_WORK = {"load(": 1, "store(": 2, "atomic(": 4}  # by the call in the generated code

# --- what is kept of it ---
MAX_PRINTED_LINES = 10_000
MAX_PRINTED_CHARACTERS = 2_000_000
MAX_INSPECTED_VALUES = 1_000_000
MAX_SAMPLED_LANES = 20_000_000
MAX_EVENTS = 200_000


def work_of(lines: list[str]) -> int:
    """Return the work of running these lines of generated code once, in one set of few lanes."""
    accesses = sum(cost * line.count(name) for line in lines for name, cost in ACCESS_WORK.items())
    return 1 + accesses + len(lines) // 16
