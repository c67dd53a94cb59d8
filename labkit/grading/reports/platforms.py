"""The points of an assignment in the files that learning platforms import; the student's name is the login there.

Who has an answer that is not graded yet is left out: Canvas takes an empty cell for a score to delete.
"""

from labkit.grading.grades import Grade, sum_points
from labkit.grading.reports.tables import make_csv


def make_canvas_csv(grades: list[Grade], assignment: str) -> str:
    """A gradebook for Canvas, by the columns that its importer asks for (canvas-lms, lib/gradebook_importer.rb)."""
    known = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    most = max((out_of for _, out_of in sum_points(grades).values()), default=0)
    rows = [{"Student": "    Points Possible", assignment: most}]
    rows += [{"Student": name, "SIS Login ID": name, assignment: points} for name, points in _fully_graded(grades)]
    return make_csv(rows, [*known, assignment])


def make_moodle_csv(grades: list[Grade], assignment: str) -> str:
    """Logins and points for Moodle, whose import asks what each column is (docs.moodle.org, "Grade import")."""
    rows = [{"username": name, assignment: points} for name, points in _fully_graded(grades)]
    return make_csv(rows, ["username", assignment])


def _fully_graded(grades):
    """Students of whom all is graded, and their points."""
    open_ = {row.student for row in grades if row.points is None}
    return [(name, points) for name, (points, _) in sum_points(grades).items() if name not in open_]
