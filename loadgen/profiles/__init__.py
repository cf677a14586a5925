"""Server profiles: vLLM config files read, checked strictly, and derived (K, schedule)."""
