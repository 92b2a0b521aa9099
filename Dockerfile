# The image: Python, the locked packages, app/ and certs/. Runs as nobody in particular on a read-only root; writes nothing.
# Two builds of one commit have one digest where the builder sets all times (scripts/image.sh): the build keeps no cache,
# no time in a .pyc file, no place it came from. docs/image.md tells more.
ARG PYTHON_IMAGE=python:3.13-slim

# hadolint ignore=DL3006
FROM ${PYTHON_IMAGE} AS build
ENV PIP_CONFIG_FILE=/run/secrets/pip.conf \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /src

# Three environments, none with a pip of its own: /opt/venv is shipped, what builds the wheel and what lists the
# packages stay behind. Where packages come from is the builder's secret, if any: a pip.conf, and the authorities it
# may name as /run/secrets/ca.crt.
COPY requirements.txt requirements-build.txt requirements-sbom.txt ./
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=ca.crt \
    for name in venv build sbom; do python -m venv --without-pip "/opt/$name" || exit; done \
    && install() { python -m pip --python "/opt/$1/bin/python" install --no-compile --require-hashes --only-binary=:all: -r "$2"; } \
    && install venv requirements.txt \
    && install build requirements-build.txt \
    && install sbom requirements-sbom.txt

COPY pyproject.toml README.md LICENSE ./
COPY certs certs
COPY app app
RUN python -m pip --python /opt/build/bin/python wheel --no-deps --no-build-isolation --no-index --wheel-dir /opt/wheel . \
    && python -m pip --python /opt/venv/bin/python install --no-compile --no-deps --no-index --find-links /opt/wheel vacancy

# The list of packages, as its tool writes it: to validate that again would take as long as all the installing. Then out
# goes what serving doesn't need: other packages' commands and tests, what cel-expr-python's builder left in its wheel.
RUN /opt/sbom/bin/cyclonedx-py environment --output-reproducible --no-validate --pyproject pyproject.toml -o /opt/venv/vacancy.cdx.json /opt/venv \
    && find /opt/venv/bin ! -type d ! -name 'python*' ! -name '*vacancy' -delete \
    && find /opt/venv/lib -type d \( -name __pycache__ -o -name tests -o -name bazel-project \) -prune -exec rm -r {} + \
    && python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/venv/lib

# hadolint ignore=DL3006
FROM ${PYTHON_IMAGE}
ARG VERSION
ARG REVISION
ARG SOURCE
LABEL org.opencontainers.image.title="Vacancy" \
      org.opencontainers.image.description="Refuses a Kubernetes pod at admission when every DRA device that could serve it is certainly taken." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
COPY --from=build /opt/venv /opt/venv
USER 65532:65532
EXPOSE 8443 8080
ENTRYPOINT ["vacancy"]
CMD ["serve"]
