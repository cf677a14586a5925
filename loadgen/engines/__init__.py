"""Engines: what turns a profile into a server that answers, and ends it again."""
