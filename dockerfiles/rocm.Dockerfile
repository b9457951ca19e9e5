# The ROCm lanes: hipcc, clang and the device libraries of Debian, or a vendor image as BASE that brings its own.
ARG BASE=debian:forky
FROM ${BASE} AS runtime
ARG PIP_INDEX_URL PIP_EXTRA_INDEX_URL
COPY ca/ /usr/local/share/ca-certificates/
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt PATH=/opt/env/bin:$PATH
COPY runtime.sh /tmp/runtime.sh
RUN sh /tmp/runtime.sh

ARG CLANG_VERSION=21
COPY rocm-toolkit.sh /tmp/rocm-toolkit.sh
RUN CLANG_VERSION=${CLANG_VERSION} sh /tmp/rocm-toolkit.sh
# Where nvcc is installed too, hipcc would pick the NVIDIA platform.
ENV HIP_PLATFORM=amd PATH=$PATH:/opt/rocm/bin
