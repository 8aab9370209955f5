# One process, one volume. The built-in model is taken at first start, into the volume.
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY bot bot
COPY handlers handlers
COPY memory memory
RUN python -m venv /opt/merk && /opt/merk/bin/pip install --no-cache-dir -c constraints.txt '.[matrix]'

FROM python:3.13-slim
RUN useradd --system --create-home --home-dir /data merk
COPY --from=build /opt/merk /opt/merk
ENV PATH=/opt/merk/bin:$PATH HOME=/data MERK_TENANT__DATA_DIR=/data
USER merk
VOLUME /data
HEALTHCHECK --interval=300s --timeout=20s --start-period=60s CMD ["merk", "doctor", "--quiet"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["merk"]
CMD ["run"]
