"""labkit: From Triple Loops to FlashAttention, an interactive GPU textbook and lab."""

__version__ = "0.1.0"

_LAZY = {
    "simulate": "labkit.simulator.run",
    "explore": "labkit.simulator.explorer.schedules",
    "specialise": "labkit.cuda",
    "check": "labkit.exercises",
}


def __getattr__(name):
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'labkit' has no attribute {name!r}")
