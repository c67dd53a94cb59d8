"""Machine code of programmatic dependent launch."""

from labkit.ptx import launches
from labkit.ptx.intrinsics import intrinsic, plain

intrinsic(launches.launch_wait)(plain("griddepcontrol.wait;"))
intrinsic(launches.launch_release)(plain("griddepcontrol.launch_dependents;"))
