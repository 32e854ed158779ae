# The command line of tpudeploy: docker build -t tpudeploy .
#
#   docker run --rm -it -v "$PWD:/work" -v "$HOME/.config/gcloud:/home/tpudeploy/.config/gcloud:ro" \
#       --user "$(id -u):$(id -g)" -e HOME=/home/tpudeploy tpudeploy plan prod.yaml
#
# What is installed has the versions and hashes of constraints/pipeline.txt, with the extra `gcs`.
ARG PYTHON=3.13-slim-trixie

FROM python:${PYTHON} AS build
WORKDIR /source
COPY constraints/pipeline.txt constraints/
RUN python -m venv /opt/tpudeploy \
    && /opt/tpudeploy/bin/pip install --no-cache-dir --require-hashes --only-binary :all: --requirement constraints/pipeline.txt
COPY pyproject.toml README.md CHANGELOG.md LICENSE ./
COPY templates templates
COPY profiles profiles
COPY tpudeploy tpudeploy
RUN /opt/tpudeploy/bin/pip install --no-cache-dir --no-deps --no-index --no-build-isolation .

FROM python:${PYTHON}
COPY --from=build /opt/tpudeploy /opt/tpudeploy
RUN useradd --create-home --uid 1000 tpudeploy
USER 1000
WORKDIR /work
ENV PATH=/opt/tpudeploy/bin:$PATH
ENTRYPOINT ["tpudeploy"]
CMD ["--help"]
