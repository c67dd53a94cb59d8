"""Views of a Trace: each is a live widget, a page that needs no kernel, and a still picture (see base.py)."""

from labkit.views.agreement import agreement
from labkit.views.attention_errors import attention_errors
from labkit.views.attention_row import attention_row
from labkit.views.butterflies import butterflies
from labkit.views.cache import cache
from labkit.views.cached_tiles import cached_tiles
from labkit.views.ceilings import ceilings
from labkit.views.chained_fragments import chained_fragments
from labkit.views.cluster import cluster
from labkit.views.collapse import collapse
from labkit.views.compare_outputs import compare_outputs
from labkit.views.curves import curves
from labkit.views.descriptor import descriptor
from labkit.views.divergence import divergence
from labkit.views.dq_sums import dq_sums
from labkit.views.filtering import filtering
from labkit.views.findings import findings
from labkit.views.format_map import format_map
from labkit.views.fragments import fragments
from labkit.views.generations import generations
from labkit.views.grid_to_lane import grid_to_lane
from labkit.views.inspector import inspector
from labkit.views.intensities import intensities
from labkit.views.io_curve import io_curve
from labkit.views.key_order import key_order
from labkit.views.ladder import ladder
from labkit.views.landscape import Standing, landscape
from labkit.views.latency_hiding import latency_hiding
from labkit.views.lowered_sizes import lowered_sizes
from labkit.views.lowering import lowering
from labkit.views.mbarriers import mbarriers
from labkit.views.memory import banks, memory
from labkit.views.memory_order import memory_order
from labkit.views.misses import misses
from labkit.views.number_line import number_line
from labkit.views.occupancy import occupancy
from labkit.views.outdated import remembers_kernels
from labkit.views.outputs import outputs
from labkit.views.passes import passes
from labkit.views.pipeline import pipeline
from labkit.views.pixel_rows import pixel_rows
from labkit.views.playground import playground
from labkit.views.predict import predict
from labkit.views.ragged import ragged
from labkit.views.records import records
from labkit.views.register_file import register_file
from labkit.views.relative import relative
from labkit.views.rescaled_output import rescaled_output
from labkit.views.rescaling import rescaling
from labkit.views.roofline import roofline
from labkit.views.rotation import rotation
from labkit.views.schedule import schedule
from labkit.views.score_tiles import score_tiles
from labkit.views.sectors import sectors
from labkit.views.shape_ratios import shape_ratios
from labkit.views.shuffles import shuffles
from labkit.views.spectral_product import spectral_product
from labkit.views.spectrum import spectrum
from labkit.views.split_cache import split_cache
from labkit.views.suitability import suitability
from labkit.views.swizzle import swizzle
from labkit.views.terms import terms
from labkit.views.tile_errors import tile_errors
from labkit.views.tile_sizes import tile_sizes
from labkit.views.tile_transform import tile_transform
from labkit.views.tiling import tiling
from labkit.views.timeline import Idea, timeline
from labkit.views.transposing import transposing
from labkit.views.variance_errors import variance_errors
from labkit.views.verdicts import verdicts
from labkit.views.walks import walks
from labkit.views.warp_loads import warp_loads
from labkit.views.warp_states import warp_states
from labkit.views.warp_timeline import warp_timeline
from labkit.views.waves import waves
from labkit.views.whole_ladder import Rung, whole_ladder
from labkit.views.window import window
from labkit.views.winners import winners
from labkit.views.workspace_limits import workspace_limits
from labkit.views.wraparound import wraparound

__all__ = [
    "Idea", "Rung", "Standing", "agreement", "attention_errors", "attention_row", "banks", "butterflies", "cache",
    "cached_tiles", "ceilings", "chained_fragments", "cluster", "collapse", "compare_outputs", "curves", "descriptor",
    "divergence", "dq_sums", "filtering", "findings", "format_map", "fragments", "generations", "grid_to_lane",
    "inspector", "intensities", "io_curve", "key_order", "ladder", "landscape", "latency_hiding",
    "lowered_sizes", "lowering", "mbarriers", "memory", "memory_order", "misses", "number_line", "occupancy", "outputs",
    "passes", "pipeline", "pixel_rows", "playground", "predict", "ragged", "records", "register_file", "relative",
    "rescaled_output", "rescaling", "roofline", "rotation", "schedule", "score_tiles", "sectors", "shape_ratios",
    "shuffles", "spectral_product", "spectrum", "split_cache", "suitability", "swizzle", "terms", "tile_errors",
    "tile_sizes", "tile_transform", "tiling", "timeline", "transposing", "variance_errors", "verdicts", "walks",
    "warp_loads", "warp_states", "warp_timeline", "waves", "whole_ladder", "window", "winners", "workspace_limits",
    "wraparound",
]  # fmt: skip

for _name, _view in [(name, globals()[name]) for name in __all__]:
    if not isinstance(_view, type):  # a function that makes a view
        globals()[_name] = remembers_kernels(_view)
