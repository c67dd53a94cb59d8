"""Exploration of a launch in every order of its warps that makes a difference."""
