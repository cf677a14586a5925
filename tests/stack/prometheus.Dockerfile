# Debian's Prometheus on the test base, in place of prom/prometheus.
ARG BASE
FROM ${BASE}
RUN apt-get update -q && apt-get install -y -q --no-install-recommends prometheus && rm -rf /var/lib/apt/lists/*
RUN install -d -o prometheus /prometheus
USER prometheus
ENTRYPOINT ["prometheus"]
