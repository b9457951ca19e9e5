#!/bin/sh
# The HIP toolchain of a vendor image where there is one, else Debian's; `hip-clang++` names its compiler either way.
set -eu

apt-get -o Acquire::Check-Valid-Until=false update
if [ -x /opt/rocm/llvm/bin/clang++ ]; then
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends g++ make
    compiler=/opt/rocm/llvm/bin/clang++
else
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        g++ make hipcc libamdhip64-dev "clang-$CLANG_VERSION" "lld-$CLANG_VERSION" "llvm-$CLANG_VERSION"
    compiler=$(command -v "clang++-$CLANG_VERSION")
fi
rm -rf /var/lib/apt/lists/*
ln -s "$compiler" /usr/local/bin/hip-clang++
