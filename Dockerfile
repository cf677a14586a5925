# Images of loadgen. Targets:
#   loadgen         the service, the simulator and Locust; small, not root (make image)
#   loadgen-docker  the same with Compose, for docker-compose.socket.yml
#   vllm-suffix     vLLM with arctic-inference, for the profile suffix: docker build --target vllm-suffix .
# Lock an image by its digest with --build-arg PYTHON_IMAGE=python:3.13-slim-bookworm@sha256:... ; `docker buildx
# imagetools inspect NAME:TAG` prints the digest.
ARG PYTHON_IMAGE=python:3.13-slim-bookworm
ARG VLLM_IMAGE=vllm/vllm-openai:v0.32.0

FROM ${PYTHON_IMAGE} AS packages
COPY requirements-image.lock /
# pip is needed here alone, so that it is in no later layer.
RUN python3 -m venv --without-pip /venv && python3 -m venv /build && \
    /build/bin/pip --python /venv/bin/python install --no-cache-dir --no-compile --disable-pip-version-check \
        --require-hashes -r /requirements-image.lock

FROM packages AS packages-docker
COPY requirements-stack.lock /
RUN /build/bin/pip --python /venv/bin/python install --no-cache-dir --no-compile --disable-pip-version-check \
        --require-hashes -r /requirements-stack.lock

FROM ${PYTHON_IMAGE} AS plain
RUN useradd --uid 10001 --create-home loadgen && mkdir /runs && chown loadgen: /runs
ENV PATH=/venv/bin:$PATH PYTHONPATH=/app PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
USER loadgen
EXPOSE 8080
# The exec form: SIGTERM reaches Python itself.
ENTRYPOINT ["python3", "-m", "loadgen"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8080", "--runs", "/runs"]
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python3", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/health', timeout=4)"]

FROM plain AS loadgen
COPY --from=packages /venv /venv
COPY server_profiles /app/server_profiles
COPY locustfile.py /app/
COPY loadgen /app/loadgen

FROM plain AS loadgen-docker
COPY --from=packages-docker /venv /venv
COPY server_profiles /app/server_profiles
COPY loadgen /app/loadgen

FROM ${VLLM_IMAGE} AS vllm-suffix
# PyPI has this release as source only; it compiles an extension. The import is the one that vLLM makes.
RUN apt-get update && apt-get install -y --no-install-recommends cmake g++ && rm -rf /var/lib/apt/lists/* && \
    (command -v uv >/dev/null || python3 -m pip install --no-cache-dir uv) && \
    uv pip install --system --no-cache arctic-inference==0.1.1 && \
    python3 -c "from arctic_inference.suffix_decoding import SuffixDecodingCache"

# What a build without --target gives.
FROM loadgen
