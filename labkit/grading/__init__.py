"""Grades learners' notebooks: their answers in the trusted notebook, run under pytest and nbval."""

from labkit.grading.grade import Grade, grade
from labkit.grading.report import totals, write_reports

__all__ = ["Grade", "grade", "totals", "write_reports"]
