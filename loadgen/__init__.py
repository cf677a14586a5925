"""loadgen measures where speculative decoding stops paying off in vLLM, and says what to set."""

__version__ = "0.1.0"
