# The dashboard in one container: `docker build -t rope-viz . && docker run --read-only --tmpfs /tmp -m 4g -p 8501:8501 rope-viz`.
# For a fixed base image: --build-arg BASE=python:3.11-slim@sha256:… with the digest that `docker pull` prints.
ARG BASE=python:3.11-slim
FROM ${BASE}

# The CPU build of torch is a tenth of the usual one; the dashboard itself never loads it, the Kernels page's button does.
# Its index has other files than PyPI, so its version is fixed here, and everything else by the hashes in the lock file.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ARG TORCH_VERSION=2.13.0
WORKDIR /srv/rope-viz
COPY requirements.lock .
RUN pip install --no-cache-dir --require-hashes -r requirements.lock \
    && pip install --no-cache-dir --no-deps --index-url "${TORCH_INDEX}" "torch==${TORCH_VERSION}"

COPY app.py ./
COPY .streamlit/ .streamlit/
COPY assets/ assets/
COPY pages/ pages/
COPY rope_viz/ rope_viz/
RUN python -m compileall -q rope_viz pages app.py && useradd --no-create-home --uid 10001 rope
USER rope
ENV HOME=/tmp PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 MPLCONFIGDIR=/tmp WORKERS=1 BASE_PATH=""

EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["sh", "-c", "exec python -m rope_viz app --health --port 8501 --base-path \"$BASE_PATH\""]
CMD ["sh", "-c", "exec python -m rope_viz app --no-browser --host 0.0.0.0 --port 8501 --workers \"$WORKERS\" --base-path \"$BASE_PATH\""]
