"""Grading of learners' notebooks: points come from nbval, over answers that are judged as text.

This module imports nothing: pytest loads `labkit.grading.plugin` before each batch.
"""
