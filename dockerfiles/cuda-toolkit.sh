#!/bin/sh
# /opt/cuda: the toolkit of a vendor image where there is one, else the wheels of nvcc laid out as CMake looks for them.
set -eu

apt-get -o Acquire::Check-Valid-Until=false update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    g++ make ${CUDA_HOST_GCC:+"g++-$CUDA_HOST_GCC"}
rm -rf /var/lib/apt/lists/*

if [ -x /usr/local/cuda/bin/nvcc ]; then
    ln -s /usr/local/cuda /opt/cuda
    exit 0
fi
/opt/env/bin/pip install --no-cache-dir \
    "nvidia-cuda-nvcc==$CUDA_VERSION" "nvidia-cuda-crt==$CUDA_VERSION" "nvidia-nvvm==$CUDA_VERSION" \
    "nvidia-cuda-runtime==$CUDA_VERSION" "nvidia-cuda-cccl==$CUDA_CCCL_VERSION"
ln -s "$(ls -d /opt/env/lib/python3*/site-packages/nvidia/cu*)" /opt/cuda
# A wheel has no library under its unversioned name.
for library in /opt/cuda/lib/lib*.so.*; do
    ln -sf "$(basename "$library")" "${library%%.so.*}.so"
done
ln -s lib /opt/cuda/lib64
