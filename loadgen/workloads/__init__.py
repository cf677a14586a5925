"""Workloads: ordered prompt lists that follow from a seed, identical for all profiles."""
