"""The load path: transport, SSE, load shapes; one RequestRecord per request."""
