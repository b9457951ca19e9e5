# The CUDA lanes: nvcc from its pip wheels, or a vendor image as BASE that brings its own toolkit.
ARG BASE=debian:forky
FROM ${BASE} AS runtime
ARG PIP_INDEX_URL PIP_EXTRA_INDEX_URL
COPY ca/ /usr/local/share/ca-certificates/
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt PATH=/opt/env/bin:$PATH
COPY runtime.sh /tmp/runtime.sh
RUN sh /tmp/runtime.sh

ARG CUDA_VERSION=13.5.37
ARG CUDA_CCCL_VERSION=13.3.5.0.6
# Major version of a further g++, for an nvcc that refuses the base's own.
ARG CUDA_HOST_GCC
COPY cuda-toolkit.sh /tmp/cuda-toolkit.sh
RUN sh /tmp/cuda-toolkit.sh
ENV PATH=/opt/cuda/bin:$PATH
