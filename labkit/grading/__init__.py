"""Grades learners' notebooks: answers are judged from their text, then run in the trusted notebook."""

from labkit.grading.grade import Grade, grade
from labkit.grading.report import totals, write_reports
from labkit.grading.submission import book_solutions

__all__ = ["Grade", "book_solutions", "grade", "totals", "write_reports"]
