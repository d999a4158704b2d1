# mcp-abridge as an image: the wheel, its dependencies and nothing else, run by an ordinary user.
FROM python:3.13-slim AS build
WORKDIR /src
COPY . .
RUN pip wheel --no-cache-dir --wheel-dir /wheels .

FROM python:3.13-slim
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-compile --no-index --find-links /wheels mcp-abridge \
    && python -m compileall -q "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
    && useradd --system --uid 10001 --create-home --home-dir /var/lib/mcp-abridge abridge \
    && mkdir -p /etc/mcp-abridge/rules.d
# The ledger goes to the user's state folder; rule files are mounted read-only.
VOLUME ["/etc/mcp-abridge/rules.d"]
USER 10001
WORKDIR /var/lib/mcp-abridge
ENTRYPOINT ["mcp-abridge"]
