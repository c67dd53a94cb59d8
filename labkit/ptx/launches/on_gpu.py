"""GPU code of programmatic dependent launch: LLVM IR and inline PTX."""

from labkit.ptx import launches
from labkit.ptx.intrinsics import bare_instruction, intrinsic

intrinsic(launches.launch_wait)(bare_instruction("griddepcontrol.wait;"))
intrinsic(launches.launch_release)(bare_instruction("griddepcontrol.launch_dependents;"))
