"""What belongs to which vendor: headers, API names, folders, predefined macros. Data and look-ups only."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePosixPath

CUDA, HIP, MUSA, METAL, SYCL, VULKAN = "cuda", "hip", "musa", "metal", "sycl", "vulkan"

# Both vendors ship these under one name.
_SHARED = re.compile(r"thrust/|nccl\.h$")
_CUDA_AND_MUSA = re.compile(r"cub/|cooperative_groups")
_HEADERS = (
    (
        re.compile(
            r"hip/|hip(blas|fft|rand|sparse|solver|cub|dnn|tensor)|roc(blas|fft|rand|sparse|solver|prim|thrust|wmma|tracer|m_smi|m-core)|rccl|miopen/|hsa/|amd_"
        ),
        HIP,
    ),
    (
        re.compile(
            r"(cuda|cuda_\w+|cudart_platform|cuComplex|cublas\w*|cublas_v2|cudnn\w*|cufft\w*|curand\w*|cusparse\w*|cusolver\w*"
            r"|nvrtc|nvml|nvToolsExt|nvJitLink|driver_types|device_launch_parameters|math_constants|mma|sm_\w+|cudaProfiler"
            r"|cooperative_groups|cufile|nvshmem\w*|cuda_pipeline|channel_descriptor|vector_types|device_functions)\.h(pp)?$"
            r"|cub/|cutlass/|cute/|cudnn_frontend|nvtx3/|cuda/(std/|barrier|pipeline|atomic|ptx|annotated_ptr|functional|cmath)"
            r"|cooperative_groups/|nv/target|ATen/cuda/|c10/cuda/|torch/csrc/cuda/"
        ),
        CUDA,
    ),
    (re.compile(r"musa|mublas|mudnn|murand|mufft|mcc"), MUSA),
    (re.compile(r"Metal/|MetalKit/|MetalPerformanceShaders"), METAL),
    (re.compile(r"sycl/|CL/sycl\.hpp|dpct/"), SYCL),
    (re.compile(r"vulkan/"), VULKAN),
)

FOLDERS = {"cuda": CUDA, "hip": HIP, "rocm": HIP, "musa": MUSA, "metal": METAL, "sycl": SYCL, "vulkan": VULKAN}

_API = (
    (
        re.compile(
            r"cuda[A-Z]\w*|cu(blas|dnn|fft|rand|sparse|solver)(Lt)?(Xt)?[A-Z]\w*|CU(BLAS|DNN|FFT|RAND|SPARSE|SOLVER)(LT)?_\w+"
            r"|CUDA_[RC]_\d+\w*|cu(Ctx|Device|Event|Func|Init|Launch|Link|Mem|Memcpy|Module|Stream|Graph)[A-Z]\w*"
            r"|nv_bfloat16\w*|__nv_\w+|curand_\w+"
        ),
        CUDA,
    ),
    (
        re.compile(
            r"hip[A-Z]\w*|hip(blas|fft|rand|sparse|solver)(Lt)?[A-Z]\w*|HIP(BLAS|FFT|RAND|SPARSE)_\w+|rocblas_\w+|__hip_\w+"
            r"|__builtin_amdgcn_\w+"
        ),
        HIP,
    ),
    (re.compile(r"musa[A-Z]\w*|mu(blas|dnn|fft|rand|sparse|solver)[A-Z]\w*|MU(BLAS|FFT|RAND|SPARSE)_\w+"), MUSA),
)

_MACROS = (
    (
        re.compile(
            r"__CUDACC__|__NVCC__|__CUDA__|__CUDA_ARCH(_LIST|_SPECIFIC|_FAMILY_SPECIFIC)?__|__CUDA_ARCH_FEAT_\w+|__CUDACC_VER_(MAJOR|MINOR|BUILD)__"
            r"|__CUDACC_(RDC|RTC|EWP|DEBUG|EXTENDED_LAMBDA|RELAXED_CONSTEXPR|DEVICE_ATOMIC_BUILTINS|INTEGRATED)__|__CUDACC_RTC\w*"
            r"|__NVCC_DIAG_PRAGMA_SUPPORT__|__CUDA_(NO|API|FP|HALF|BF16|DEPRECATED|INTERNAL|ALIGN|RUNTIME|HOSTDEVICE|CC|FTZ|PREC|USE)_\w+"
            r"|__NV_\w+|__NVCOMPILER\w*|__nv_\w+|CUDA_VERSION|CUDART_VERSION|CUDNN_(VERSION|MAJOR|MINOR)|CUBLAS_VERSION|NCCL_\w+"
        ),
        CUDA,
    ),
    (
        re.compile(
            r"__HIP__|__HIPCC__|__HIPCC_RTC__|__HIP_DEVICE_COMPILE__|__HIP_PLATFORM_(AMD|HCC|NVIDIA|NVCC|SPIRV)__|__HIP_ROCclr__"
            r"|__HIP_(ARCH_HAS|ARCH_GFX|NO|MEMORY_SCOPE|FP8|USE|API|DISABLE|ENABLE|HCC|CLANG|RUNTIME|NOINLINE|SAMPLER|TEXTURE|CC)_\w+|__HCC\w*"
            r"|HIP_VERSION(_\w+)?|HIP_INCLUDE_\w+|__AMDGCN__|__AMDGPU__|__AMDGCN_\w+|__AMD_\w+|__amdgcn_\w+|__R600__"
            r"|__(gfx|GFX)[0-9a-z]+__|__gfx[0-9a-z_]+__|ROCM_VERSION(_\w+)?|HIPBLAS_\w+|ROCWMMA_\w+"
        ),
        HIP,
    ),
    (re.compile(r"__MUSA\w*|__MUSACC__|MUSART_VERSION|MUSA_VERSION"), MUSA),
)
_VENDOR_SPACE = re.compile(r"_*(HIP|HIPCC|CUDA|CUDACC|NVCC|AMDGCN|AMDGPU|GFX|gfx)_?\w*_*")
_PLATFORM = re.compile(
    r"_WIN32|_WIN64|WIN32|_MSC_VER|__linux__|__linux|linux|__unix__|__APPLE__|__MACH__|__ANDROID__|__FreeBSD__|__CYGWIN__|__MINGW32__"
    r"|TARGET_OS_\w+|__x86_64__|_M_X64|_M_AMD64|_M_IX86|__i386__|__aarch64__|_M_ARM64|__arm__|__arm64__|__ARM_\w+|__powerpc\w*__|__riscv\w*|__wasm\w*"
)


@lru_cache(maxsize=20_000)
def of_header(target: str) -> frozenset[str]:
    """Vendors that ship a header; empty for everybody's. More than one where each of them does."""
    if _SHARED.match(target):
        return frozenset({CUDA, HIP, MUSA})
    if _CUDA_AND_MUSA.match(target):
        return frozenset({CUDA, MUSA})
    return next((frozenset({vendor}) for pattern, vendor in _HEADERS if pattern.match(target)), frozenset())


@lru_cache(maxsize=20_000)
def of_path(path: str) -> str | None:
    """The vendor whose folder, or vendor-named header, a project file is."""
    pure = PurePosixPath(path)
    for part in pure.parts[:-1]:
        if part in FOLDERS:
            return FOLDERS[part]
    return FOLDERS.get(pure.stem) if pure.parent.name in {"vendors", "vendor"} else None


@lru_cache(maxsize=100_000)
def of_name(name: str) -> str | None:
    """The vendor whose API a name looks like."""
    return next((vendor for pattern, vendor in _API if pattern.fullmatch(name)), None)


@lru_cache(maxsize=20_000)
def of_macro(name: str) -> str | None:
    """The vendor whose compiler or headers define a macro."""
    return next((vendor for pattern, vendor in _MACROS if pattern.fullmatch(name)), None)


def in_vendor_space(name: str) -> bool:
    """Whether a reserved name reads like a vendor's predefined macro."""
    return name.startswith("__") and bool(_VENDOR_SPACE.fullmatch(name))


def is_platform(name: str) -> bool:
    return bool(_PLATFORM.fullmatch(name))


HEADER_SUFFIXES = frozenset({".h", ".hpp", ".hh", ".hxx", ".cuh", ".inl", ".inc", ".ipp", ".tpp"})
SOURCE_SUFFIXES = frozenset({".cpp", ".cc", ".cxx", ".c", ".cu", ".hip", ".mu"})
GPU_SUFFIXES = {".cu": frozenset({CUDA, HIP, MUSA}), ".hip": frozenset({HIP}), ".mu": frozenset({MUSA})}

MODIFIERS = ("__host__", "__device__", "__global__", "__forceinline__", "__noinline__", "__inline__")

WARP_32, WARP_64 = 32, 64
_WAVE64 = re.compile(r"gfx(6|7|8|9)\w*")


def wavefront(arch: str | None) -> int | None:
    """Lanes per wavefront of an architecture; None where the name tells nothing."""
    if arch is None:
        return None
    if arch.startswith("gfx"):
        return WARP_64 if _WAVE64.fullmatch(arch) and not arch.startswith(("gfx10", "gfx11", "gfx12")) else WARP_32
    return WARP_32 if arch.startswith(("sm_", "compute_")) else None


# Names of the C and C++ libraries that a project may call unqualified: an own function of the same name is an overload.
STANDARD_NAMES = frozenset(
    """abort abs accumulate acos acosh advance all_of any_of apply asin asinh assert atan atan2 atanh atexit atof
    atoi atol back_inserter begin bind bit_cast calloc cbrt ceil cend cbegin clamp clear close cmp copy copy_if
    copy_n copysign cos cosh count count_if data declval destroy distance emplace empty end equal erase erf erfc
    exit exp exp2 expm1 fabs fclose fdim fflush fgets fill fill_n find find_if floor fma fmax fmin fmod fopen
    for_each fprintf fputc fputs fread free frexp fseek ftell fwrite generate get getenv getline hash
    holds_alternative hypot insert invoke iota isalnum isalpha isdigit isfinite isinf isnan isspace join labs
    ldexp lerp lgamma log log10 log1p log2 logb lock lower_bound lrint lround make_pair make_shared make_tuple
    make_unique malloc max max_element memchr memcmp memcpy memmove memset merge min min_element minmax mismatch
    modf move mutable nan next none_of now nth_element open partial_sum partition perror pop pow prev print
    printf push push_back putchar puts qsort rand raise read realloc ref cref release remainder remove remove_if
    rename replace reserve reset resize reverse rewind rint rotate round scalbn search select send recv set
    setenv setvbuf shuffle signal signbit sin sinh size snprintf socket sort sprintf sqrt srand sscanf
    stable_sort stat stod stof stoi stol stoul strcat strchr strcmp strcpy strdup strerror strlen strncat
    strncmp strncpy strrchr strstr strtod strtof strtok strtol strtoul strtoull swap system tan tanh tgamma tie
    time tolower toupper transform trunc unlink unique upper_bound vector visit vprintf vsnprintf wait write
    yield forward exchange to_string format""".split()
)


_TARGET_MACRO = re.compile(r"__(gfx[0-9a-f]+)__|__GFX(\d+)__")


def target_of_macro(name: str) -> str | None:
    """The GPU target, or its family, that a predefined macro stands for: `__gfx1100__`, `__GFX11__`."""
    match = _TARGET_MACRO.fullmatch(name)
    return match and (match.group(1) or f"gfx{match.group(2)}")


def target_covers(target: str, arch: str) -> bool:
    """Whether a macro's target speaks of an architecture; `gfx9` covers gfx90a, `gfx11` covers gfx1100."""
    return arch == target or (len(arch) - len(target) == 2 and arch.startswith(target))
