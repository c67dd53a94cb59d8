"""Other people's programs on the simulator: `labkit run`, and `pytest --labkit`.

A program that imports numba's `cuda` runs unedited: `stand_in` puts labkit's `cuda` in its place. `collector` merges
the findings of all launches, and a file per format (`text`, `as_json`, `github`, `junit`) writes them.
"""
