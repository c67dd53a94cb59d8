"""The points of an assignment as files for learning platforms; the student's name is the login there.

Students with an answer that is not graded yet are left out: Canvas takes an empty cell for a score to delete.
"""

from labkit.grading.grades import Grade, sum_points
from labkit.grading.reports.tables import make_csv


def make_canvas_csv(grades: list[Grade], assignment: str) -> str:
    """Make a gradebook for Canvas, with the columns that its importer needs (canvas-lms, lib/gradebook_importer.rb)."""
    columns = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    out_of = max((possible for _, possible in sum_points(grades).values()), default=0)
    rows = [{"Student": "    Points Possible", assignment: out_of}]
    rows += [{"Student": name, "SIS Login ID": name, assignment: points} for name, points in _fully_graded(grades)]
    return make_csv(rows, [*columns, assignment])


def make_moodle_csv(grades: list[Grade], assignment: str) -> str:
    """Make a file of logins and points for Moodle, whose import asks for columns (docs.moodle.org, "Grade import")."""
    rows = [{"username": name, assignment: points} for name, points in _fully_graded(grades)]
    return make_csv(rows, ["username", assignment])


def _fully_graded(grades):
    """Return the students whose answers are all graded, with their points."""
    ungraded = {row.student for row in grades if row.points is None}
    return [(name, points) for name, (points, _) in sum_points(grades).items() if name not in ungraded]
