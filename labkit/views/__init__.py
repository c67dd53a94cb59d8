"""Views of a Trace: each is a live widget, a page that needs no kernel, and a still picture (see base.py)."""

from labkit.views.agreement import agreement
from labkit.views.attention_errors import attention_errors
from labkit.views.cache import cache, hit_rates
from labkit.views.collapse import collapse
from labkit.views.filtering import filtering
from labkit.views.findings import findings
from labkit.views.fragments import fragments
from labkit.views.inspector import inspector
from labkit.views.landscape import Standing, landscape
from labkit.views.lowering import lowering
from labkit.views.memory import banks, memory
from labkit.views.outputs import outputs
from labkit.views.passes import passes
from labkit.views.pipeline import pipeline
from labkit.views.playground import playground
from labkit.views.predict import predict
from labkit.views.records import records
from labkit.views.rescaling import rescaling
from labkit.views.roofline import roofline
from labkit.views.schedule import schedule
from labkit.views.score_tiles import score_tiles
from labkit.views.sectors import sectors
from labkit.views.swizzle import swizzle
from labkit.views.terms import terms
from labkit.views.tile_sizes import tile_sizes
from labkit.views.tiling import tiling
from labkit.views.variance_errors import variance_errors
from labkit.views.warp_timeline import warp_timeline
from labkit.views.window import window
from labkit.views.winners import winners
from labkit.views.wraparound import wraparound

__all__ = [
    "Standing", "agreement", "attention_errors", "banks", "cache", "collapse", "filtering", "findings", "fragments",
    "hit_rates", "inspector", "landscape", "lowering", "memory", "outputs", "passes", "pipeline", "playground",
    "predict", "records", "rescaling", "roofline", "schedule", "score_tiles", "sectors", "swizzle", "terms",
    "tile_sizes", "tiling", "variance_errors", "warp_timeline", "window", "winners", "wraparound",
]  # fmt: skip
