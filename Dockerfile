# mcp-abridge as an image: the wheel, its dependencies and nothing else, run by an ordinary user.
#
#   docker run -p 127.0.0.1:8808:8808 -e MCP_ABRIDGE_TOKEN -v ./rules:/etc/mcp-abridge/rules.d:ro mcp-abridge serve URL
#   docker run -i mcp-abridge -- COMMAND
#
# The first serves a remote server over HTTP, the second wraps a command on stdin and stdout: one of Python, or of an
# image that is made from this one, since there is no Node here (examples/sidecar/README.md). Options can be given as
# MCP_ABRIDGE_... in the environment; with MCP_ABRIDGE_CONFIG it serves without arguments. With neither, it wraps an
# example server on stdin and stdout, so that whoever tries the image sees tools. There is no HEALTHCHECK: only who
# starts a container knows whether it listens, and where; docker-compose.yaml and kubernetes.yaml there have checks.
FROM python:3.13.18-slim-trixie AS base

FROM base AS build
WORKDIR /src
COPY . .
RUN pip wheel --no-cache-dir --wheel-dir /wheels '.[redis,otel]'

FROM base
LABEL org.opencontainers.image.title="mcp-abridge" \
      org.opencontainers.image.description="Shortens the long answers of any MCP server" \
      org.opencontainers.image.licenses="Apache-2.0 AND MIT"
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-compile --no-index --find-links /wheels 'mcp-abridge[redis,otel]' \
    && python -m compileall -q "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
    && useradd --system --uid 10001 --user-group --create-home --home-dir /var/lib/mcp-abridge abridge \
    && mkdir -p /etc/mcp-abridge/rules.d
# The ledger goes to the user's state folder; rule files are mounted read-only.
VOLUME ["/etc/mcp-abridge/rules.d"]
USER 10001:10001
WORKDIR /var/lib/mcp-abridge
# In a container loopback is reached by nobody else; off loopback, serve wants a token.
ENV MCP_ABRIDGE_LISTEN=0.0.0.0:8808
EXPOSE 8808
# Rule files that were mounted are used; without any, the bundled one that fits the server.
ENTRYPOINT ["sh", "-c", "\
rules=/etc/mcp-abridge/rules.d; \
[ -n \"${MCP_ABRIDGE_RULES+given}\" ] || ! ls $rules/*.yaml >/dev/null 2>&1 || export MCP_ABRIDGE_RULES=$rules; \
[ $# -gt 0 ] || [ -z \"${MCP_ABRIDGE_CONFIG-}\" ] || set -- serve; \
[ $# -gt 0 ] || set -- -- python -m mcp_abridge.examples.fullsync.server; \
exec mcp-abridge \"$@\"", "mcp-abridge"]
