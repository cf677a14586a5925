"""HTTP in front of the commands."""
