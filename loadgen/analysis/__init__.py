"""Pure functions from cells to Findings: no clock, no disk, no network."""
