"""Matrix multiplication as loops on a CPU: a ladder of four steps, and traces through a CPU's caches.

>>> from labkit import loops
>>> [step.slug for step in loops.ladder()]
['python', 'compiled', 'rows', 'blocked']
"""

from labkit.loops.ladder import Step, ladder, step
from labkit.loops.loop_trace import LoopTrace
from labkit.loops.orders import ORDERS
from labkit.loops.small_cpu import SMALL_CPU
from labkit.loops.trace import trace

__all__ = ["ORDERS", "SMALL_CPU", "LoopTrace", "Step", "ladder", "step", "trace"]
