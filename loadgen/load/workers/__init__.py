"""The closed loop in several processes of this machine: beyond one core, and under Locust."""
