"""A simulated vLLM: the engine in virtual time, an OpenAI server that drives it in real time, and the truth."""
