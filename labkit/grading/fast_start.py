"""A pytest plugin that starts a second earlier: jsonschema goes without the grammar of a format that notebooks lack."""

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # pyright: ignore[reportArgumentType] - so that its import fails
