#!/bin/sh
# build.sh BACKEND SOURCE BUILD: one backend by the host's g++. GPU sources are compiled against the stand-in headers
# beside this file, which run a kernel as a loop: they stand for a toolkit that the machine need not have. HIP names
# everything as CUDA does, so its header is CUDA's with the names changed.
set -e
backend=$1 source=$2 build=$3
toolkit=$source/toolkit
mkdir -p "$build"
flags="-std=c++20 -O0 -Wall -Wextra -Werror -I$source/include"
case $backend in
  cuda) flags="$flags -DPORT_CUDA -I$toolkit/cuda -I$toolkit" kernels=$source/src/cuda/combine_tokens.cu ;;
  rocm)
    mkdir -p "$build/toolkit/hip"
    sed 's/cuda/hip/g; s/CUDA/HIP/g' "$toolkit/cuda/cuda_runtime.h" > "$build/toolkit/hip/hip_runtime.h"
    flags="$flags -DPORT_HIP -I$build/toolkit -I$toolkit" kernels=$source/src/rocm/combine_tokens.hip
    ;;
  *) kernels= ;;
esac

# What was compiled before from the same bytes is not compiled again, in whichever lane it was.
common=$(cat "$0" "$source"/include/vt/*.h "$source"/include/vt/"$backend"/* "$toolkit"/*.h "$toolkit"/cuda/* 2>/dev/null || true)
objects=
compile() {  # FILE
  object=$build/$(basename "$1").o
  objects="$objects $object"
  known=${PORT_OBJECTS:-$build}/$({ echo "$backend $common"; cat "$1"; } | sha256sum | cut -c1-32).o
  if [ ! -f "$known" ]; then
    # shellcheck disable=SC2086
    g++ $flags -c "$1" -o "$known.$$"
    mv "$known.$$" "$known"
  fi
  cp "$known" "$object"
}

if [ "$backend" = tools ]; then
  compile "$source/src/tools/convert.cpp"
  exit
fi
compile "$source/src/runner.cpp"
compile "$source/src/$backend/platform.cpp"
compile "$source/src/main.cpp"
if [ -n "$kernels" ] && [ -f "$kernels" ]; then
  # kernel<<<grid, block>>>(arguments) is no C++; line numbers stay those of the file.
  { echo "#line 1 \"$kernels\""; sed 's/\([A-Za-z_][A-Za-z_0-9]*\)<<</::stand_in::launch(\1, /; s/>>>(/)(/' "$kernels"; } > "$build/kernels.cpp"
  compile "$build/kernels.cpp"
fi
# shellcheck disable=SC2086
g++ $objects -o "$build/port"
