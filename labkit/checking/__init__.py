"""How an answer to an exercise is judged: read, run, compared, and held against requirements and budgets."""
