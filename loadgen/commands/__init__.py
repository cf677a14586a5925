"""Use cases: the only room that joins rooms."""
