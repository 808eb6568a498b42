"""Figures, their intervals, and the texts and methods behind them."""
