"""Lets a process, or pytest with this as a plugin, start a second earlier.

jsonschema, which checks notebooks, goes without the grammar of a format that notebooks lack.
"""

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # pyright: ignore[reportArgumentType] - so that its import fails
