"""Python that has imported what `labkit run` imports: it forks for each program, which `programs.run` asks for.

A line on its input has the folder, the arguments of `labkit` and the environment; its answer the status and outputs.
"""

import gc
import json
import os
import runpy
import signal
import sys
from tempfile import TemporaryFile

import labkit.running.command  # noqa: F401
from labkit.simulator.seam.by_numba import typing_context

typing_context()  # imports what of numba the first launch needs
gc.freeze()  # else the end of each child copies all memory
for line in sys.stdin:
    folder, arguments, environment = json.loads(line)
    outputs = TemporaryFile(), TemporaryFile()  # noqa: SIM115
    child = os.fork()
    if not child:
        break
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for file in outputs:
        file.seek(0)
    print(json.dumps([status, *(file.read().decode() for file in outputs)]), flush=True)
else:
    sys.exit()

signal.alarm(300)
os.chdir(folder)
os.environ.clear()
os.environ.update(environment)
sys.path[0], sys.argv[1:] = folder, arguments
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
for number, file in enumerate(outputs, start=1):
    os.dup2(file.fileno(), number)
runpy.run_module("labkit.cli", run_name="__main__", alter_sys=True)
