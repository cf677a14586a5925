"""The run folder: append-only facts on disk, locked and resumable."""
