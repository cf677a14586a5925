"""Other load generators' results as plain facts: one file a format."""
