# A server that needs no rights: no root, no writable file system, no network of its own. It
# translates with CTranslate2, which needs no PyTorch.
#
#   docker build -t pellucid-serve .
#   docker run --rm --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges \
#     -p 127.0.0.1:8000:8000 -e PELLUCID_API_KEY -v "$PWD/runs/en-de:/models/en-de:ro" pellucid-serve
#
# With PyTorch as well, for models and searches that CTranslate2 does not have; README.md gives the
# address of its index of builds for CPUs:
#
#   docker build --build-arg TORCH_INDEX=... -t pellucid-serve .

# With the kernels of Pellucid instead of CTranslate2, which is a third smaller and computes in 8 bits:
#
#   docker build --build-arg ENGINE=kernels -t pellucid-serve .
#   docker run ... pellucid-serve --compute-type int8 /models/en-de
#
# A full version; a digest is better, and known to whoever pulls the image:
#   docker build --build-arg BASE=python@sha256:... -t pellucid-serve .
ARG BASE=python:3.12.12-slim-bookworm

FROM ${BASE} AS build
WORKDIR /build
ARG TORCH_INDEX=
ARG ENGINE=ctranslate2
COPY pyproject.toml hatch_build.py README.md LICENSE constraints.txt requirements.lock ./
COPY pellucid ./pellucid
COPY kernels ./kernels
# Installed from outside, so that the image has no pip among its packages.
RUN python -m venv --without-pip /opt/pellucid \
 && pip wheel --no-cache-dir --no-deps --wheel-dir /build/wheels . \
 && pip --python /opt/pellucid/bin/python install --no-cache-dir --require-hashes --no-deps \
      -r requirements.lock \
 && pip --python /opt/pellucid/bin/python install --no-cache-dir --no-deps /build/wheels/*.whl \
 && if [ -n "$TORCH_INDEX" ]; then \
      pip --python /opt/pellucid/bin/python install --no-cache-dir --no-deps \
        "$(grep '^torch==' constraints.txt)" --index-url "$TORCH_INDEX" \
   && pip --python /opt/pellucid/bin/python install --no-cache-dir -c constraints.txt \
        'pellucid[train]'; \
    fi \
 && if [ "$ENGINE" = kernels ]; then \
      apt-get update -qq && apt-get install -qq -y --no-install-recommends gcc libc6-dev \
   && pip --python /opt/pellucid/bin/python install --no-cache-dir --no-deps ./kernels \
   && pip --python /opt/pellucid/bin/python uninstall -q -y ctranslate2; \
    fi \
 && find /opt/pellucid/lib -type d -name tests -prune -exec rm -rf {} +

FROM ${BASE}
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin pellucid
COPY --from=build /opt/pellucid /opt/pellucid
ENV PATH=/opt/pellucid/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    XDG_CACHE_HOME=/tmp
USER 10001:10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=120s --retries=3 \
  CMD ["python", "-c", "import urllib.request as r; r.build_opener(r.ProxyHandler({})).open('http://127.0.0.1:8000/livez', timeout=2)"]
ENTRYPOINT ["pellucid", "serve", "--host", "0.0.0.0"]
CMD ["/models/en-de"]
