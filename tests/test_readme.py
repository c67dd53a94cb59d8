"""The README lists every chapter."""

import re

from labkit import places

README = places.PACKAGE.parent / "README.md"


def test_every_chapter_has_a_row_in_order():
    rows = re.findall(r"^\| (\d\d) \|", README.read_text(encoding="utf-8"), re.M)
    assert rows == [path.name[:2] for path in sorted(places.folder("notebooks").glob("source/[0-9][0-9]-*.md"))]
