# The server, for `docker build -t hansard .` (docs/deploy.md). Two stages: pip and sources stay behind.
FROM python:3.13-slim AS build
ARG EXTRAS=server,mcp,yaml
WORKDIR /src
RUN python -m venv /opt/hansard
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY compiler ./compiler
COPY store ./store
COPY instrumentation ./instrumentation
COPY collector ./collector
COPY web ./web
RUN /opt/hansard/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt ".[$EXTRAS]"
# Who serves may not write there: compiled now, the first pages after each start come 0.2 s sooner.
RUN /opt/hansard/bin/python -c "from hansard_web.ui.render import compile_templates; compile_templates()"

FROM python:3.13-slim
RUN useradd --uid 10001 --no-create-home --home-dir /data hansard \
    && install -d -m 0700 -o hansard -g hansard /data
COPY --from=build /opt/hansard /opt/hansard
# Ports of a container are useless on its loopback. Any other address needs a token: HANSARD_TOKEN.
ENV PATH=/opt/hansard/bin:$PATH \
    HANSARD_DATA=/data \
    HANSARD_HOST=0.0.0.0
USER hansard
VOLUME /data
EXPOSE 4317 4318
HEALTHCHECK --interval=30s --timeout=5s --start-period=15s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:4318/healthz', timeout=4)"]
ENTRYPOINT ["hansard"]
CMD ["serve"]
