"""GPU code of fences: LLVM IR and inline PTX."""

from labkit.ptx import fences
from labkit.ptx.intrinsics import bare_instruction, intrinsic

intrinsic(fences.fence_async)(bare_instruction("fence.proxy.async.shared::cta;"))
