"""Judges an answer to an exercise: reads it, runs it, compares its results, counts what it used.

The names here are what an exercise's file is made of; the counters are in `labkit.checking.budget`.
"""

from labkit.checking.budget import NO_FLOAT64, Budget
from labkit.checking.duty import NO_ARITHMETIC, Dependence, Duty, InputDependence
from labkit.checking.exercise import Above, Exercise, Launch, Questions
from labkit.checking.mistake import Mistake
from labkit.checking.unwritten import unwritten_array

__all__ = ["NO_ARITHMETIC", "NO_FLOAT64", "Above", "Budget", "Dependence", "Duty", "Exercise", "InputDependence"]
__all__ += ["Launch", "Mistake", "Questions", "unwritten_array"]
