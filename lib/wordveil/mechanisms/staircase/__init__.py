"""The staircase: a table with a floor under far words."""
