"""The points of an assignment in the files that learning platforms import; the student's name is the login there.

Who has an answer that is not graded yet is left out: Canvas takes an empty cell for a score to delete.
"""

from labkit.grading.grades import Grade, totals
from labkit.grading.reports.tables import table


def canvas(grades: list[Grade], assignment: str) -> str:
    """A gradebook for Canvas, by the columns that its importer asks for (canvas-lms, lib/gradebook_importer.rb)."""
    known = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    most = max((out_of for _, out_of in totals(grades).values()), default=0)
    rows = [{"Student": "    Points Possible", assignment: most}]
    rows += [{"Student": name, "SIS Login ID": name, assignment: points} for name, points in _graded(grades)]
    return table(rows, [*known, assignment])


def moodle(grades: list[Grade], assignment: str) -> str:
    """Logins and points for Moodle, whose import asks what each column is (docs.moodle.org, "Grade import")."""
    rows = [{"username": name, assignment: points} for name, points in _graded(grades)]
    return table(rows, ["username", assignment])


def _graded(grades):
    """Students of whom all is graded, and their points."""
    open_ = {row.student for row in grades if row.points is None}
    return [(name, points) for name, (points, _) in totals(grades).items() if name not in open_]
