# The CPU lanes. Targets: gcc, clang, gcc-next, arm64.
ARG BASE=debian:forky
FROM ${BASE} AS runtime
ARG PIP_INDEX_URL PIP_EXTRA_INDEX_URL
COPY ca/ /usr/local/share/ca-certificates/
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt PATH=/opt/env/bin:$PATH
COPY runtime.sh /tmp/runtime.sh
RUN sh /tmp/runtime.sh

FROM runtime AS gcc
ARG GCC_VERSION=15
RUN apt-get -o Acquire::Check-Valid-Until=false update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends g++-${GCC_VERSION} binutils libc6-dev make \
 && rm -rf /var/lib/apt/lists/*
ENV CC=gcc-${GCC_VERSION} CXX=g++-${GCC_VERSION}
RUN ln -s "$(command -v g++-${GCC_VERSION})" /usr/local/bin/g++ && ln -s "$(command -v gcc-${GCC_VERSION})" /usr/local/bin/gcc

FROM runtime AS gcc-next
ARG GCC_NEXT_VERSION=16
RUN apt-get -o Acquire::Check-Valid-Until=false update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends g++-${GCC_NEXT_VERSION} binutils libc6-dev make \
 && rm -rf /var/lib/apt/lists/*
ENV CC=gcc-${GCC_NEXT_VERSION} CXX=g++-${GCC_NEXT_VERSION}

FROM runtime AS clang
ARG CLANG_VERSION=22
RUN apt-get -o Acquire::Check-Valid-Until=false update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    clang-${CLANG_VERSION} lld-${CLANG_VERSION} libstdc++-15-dev libc6-dev make \
 && rm -rf /var/lib/apt/lists/*
ENV CC=clang-${CLANG_VERSION} CXX=clang++-${CLANG_VERSION}

# Cross-built and run under qemu: /opt/arm64 holds an arm64 Python with its packages, and `arm64-python` runs it.
FROM runtime AS arm64
COPY arm64-root.sh /tmp/arm64-root.sh
RUN apt-get -o Acquire::Check-Valid-Until=false update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    g++-aarch64-linux-gnu libc6-dev-arm64-cross make qemu-user \
 && sh /tmp/arm64-root.sh \
 && rm -rf /var/lib/apt/lists/*
ENV CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++
