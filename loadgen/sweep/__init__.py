"""The experiment: which cell next, one cell measured, progress told as events."""
