"""Server metrics: `/metrics` bodies read by exact name, as deltas and gauges over a window."""
