"""Findings in words and pictures: terminal, HTML, Markdown, CSV, JSON."""
