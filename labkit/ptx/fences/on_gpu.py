"""Machine code of fences."""

from labkit.ptx import fences
from labkit.ptx.intrinsics import intrinsic, plain

intrinsic(fences.fence_async)(plain("fence.proxy.async.shared::cta;"))
