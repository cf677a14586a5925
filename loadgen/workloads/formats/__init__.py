"""One file a format: each reads prompts or arrivals out of one kind of file."""
