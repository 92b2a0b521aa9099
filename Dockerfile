# The image: Python, the locked packages, app/ and certs/. Runs as nobody in particular on a read-only root; writes nothing.
# Two builds of one commit have one digest (with a fixed --timestamp or SOURCE_DATE_EPOCH): no caches, no times in .pyc files.
ARG PYTHON_IMAGE=python:3.13-slim

# hadolint ignore=DL3006
FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /src

# setuptools builds the one wheel of this project and stays behind; the environment gets no pip.
COPY requirements.txt requirements-build.txt ./
RUN python -m venv --without-pip /opt/venv \
    && python -m venv /opt/build \
    && /opt/build/bin/python -m pip install --no-compile --require-hashes --only-binary=:all: -r requirements-build.txt \
    && python -m pip --python /opt/venv/bin/python install --no-compile --require-hashes --only-binary=:all: -r requirements.txt

COPY pyproject.toml README.md LICENSE ./
COPY certs certs
COPY app app
RUN /opt/build/bin/python -m pip wheel --no-deps --no-build-isolation --no-index --wheel-dir /opt/wheel . \
    && python -m pip --python /opt/venv/bin/python install --no-compile --no-deps --no-index --find-links /opt/wheel vacancy \
    && find /opt/venv -name __pycache__ -prune -exec rm -rf {} + \
    && python -m compileall -q --invalidation-mode unchecked-hash /opt/venv/lib

# hadolint ignore=DL3006
FROM ${PYTHON_IMAGE}
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
COPY --from=build /opt/venv /opt/venv
USER 65532:65532
EXPOSE 8443 8080
ENTRYPOINT ["vacancy"]
CMD ["serve"]
