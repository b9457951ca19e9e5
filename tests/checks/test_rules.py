"""Rules that no public case exercises, and near misses that must stay silent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from greenlane.checks.report import Report
from greenlane.checks.rules import families, record
from greenlane.matrix.checks import RecordFields, Rule
from greenlane.matrix.model import Lane, Matrix

Checker = Callable[..., Report]


def said(report: Report) -> list[tuple[str, str, int, tuple[str, ...]]]:
    return [(finding.rule, finding.file, finding.line, finding.lanes) for finding in report.findings]


def test_every_rule_has_one_family() -> None:
    spoken = [rule for family in families() for rule in family.RULES]
    assert {*spoken, "suppression"} == {str(rule) for rule in Rule}


def test_functions_that_only_call_each_other_are_unused(check: Checker) -> None:
    source = (
        "static int a(int n);\nstatic int b(int n) { return n ? a(n - 1) : 0; }\nstatic int a(int n) { return b(n); }\n"
    )
    assert [entry[2] for entry in said(check({"a.cpp": source}))] == [2, 3]


@pytest.mark.parametrize(
    "source",
    [
        "[[maybe_unused]] static int a() { return 1; }\n",
        "template <class T> static int a(T) { return 1; }\n",
        "static int a() { return 1; }\n#define CALL a()\nint b() { return CALL; }\n",
        "static int a() { return 1; }\n#ifdef NOBODY_KNOWS\nint b() { return a(); }\n#endif\n",
        "static int a() { return 1; }\nint (*b)() = &a;\n",
        "static inline int a() { return 1; }\n",
        "static constexpr int a(int n) { return n; }\nstatic int a(int n, int m) { return n + m; }\n"
        "template <int N, int M = a(2, 3)>\nstatic int b() { return N; }\nint c() { return b<1>(); }\n",
        "int f() {\n  int used = 1;\n#pragma omp parallel for num_threads(used)\n  for (int i = 0; i < 3; ++i) {}\n"
        "  return 0;\n}\n",
    ],
)
def test_what_may_be_used_is_not_called_unused(check: Checker, source: str) -> None:
    assert said(check({"a.cpp": source})) == []


def test_a_cast_to_a_type_that_moved_on_is_found(check: Checker) -> None:
    files = {
        "plugin.cpp": 'extern "C" int run(int a, int b) { return a + b; }\n',
        "host.cpp": "#include <dlfcn.h>\nusing run_t = int (*)(int);\n"
        'int go(void* h) { return reinterpret_cast<run_t>(dlsym(h, "run"))(1); }\n',
    }
    assert said(check(files)) == [("pointer-cast-mismatch", "host.cpp", 3, ("cpu", "cuda", "rocm"))]


def test_a_launch_with_one_argument_too_few_is_found(check: Checker) -> None:
    files = {
        "a.cu": "#ifdef USE_HIP\n#include <hip/hip_runtime.h>\n#else\n#include <cuda_runtime.h>\n#endif\n"
        "__global__ void k(float* x, int n) { x[0] = n; }\nvoid go(float* x) { k<<<1, 32>>>(x); }\n"
    }
    assert said(check(files)) == [("launch-arity", "a.cu", 7, ("cuda", "rocm"))]


@pytest.mark.parametrize(
    ("left", "right", "difference"),
    [
        ("void f(int a, float b);", "void f(int a);", "2 parameters against 1"),
        ("void f(int a, int b);", "void f(int b, int a);", "the order of their parameters"),
        ("void f(int a);", "void f(long a);", "a is 'int' here and 'long' there"),
        ("void f(int a = 1);", "void f(int a = 2);", "the default of 'a'"),
        ("void f(cudaStream_t s);", "void f(hipStream_t s);", None),
    ],
)
def test_twins_are_compared_after_their_vendors_names(
    check: Checker, left: str, right: str, difference: str | None
) -> None:
    files = {
        "include/cuda/x.h": f"#pragma once\n#include <cuda_runtime.h>\n{left}\n",
        "include/rocm/x.h": f"#pragma once\n#include <hip/hip_runtime.h>\n{right}\n",
        "a.cpp": '#ifdef USE_CUDA\n#include "cuda/x.h"\n#endif\n#ifdef USE_HIP\n#include "rocm/x.h"\n#endif\n',
    }
    report = check(files)
    assert [finding.rule for finding in report.findings] == (["mirror-parity"] if difference else [])
    assert difference is None or difference in report.findings[0].message


def test_a_twin_that_lacks_a_function_is_found_where_the_matrix_pairs_them(check: Checker) -> None:
    files = {
        "include/cuda/x.h": "#pragma once\nvoid f(int a);\nvoid g();\n",
        "include/rocm/x.h": "#pragma once\nvoid f(int a);\n",
        "a.cpp": '#ifdef USE_CUDA\n#include "cuda/x.h"\n#endif\n#ifdef USE_HIP\n#include "rocm/x.h"\n#endif\n',
    }
    pair = {"mirrors": [{"left": "include/cuda/*.h", "right": "include/rocm/*.h"}]}
    assert said(check(files, pair)) == [("mirror-parity", "include/rocm/x.h", 1, ("rocm",))]
    pair["mirrors"][0]["ignore"] = ["g"]
    assert said(check(files, pair)) == []


def test_variables_are_documented_both_ways(check: Checker) -> None:
    files = {
        "a.cpp": '#include <cstdlib>\nconst char* a() { return std::getenv("ENGINE_TRACE"); }\n',
        "b.py": 'import os\nx = os.environ.get("ENGINE_LEVEL")\ny = os.environ["HOME"]\n',
        "docs/environment.md": "| `ENGINE_LEVEL` | how much |\n| `ENGINE_GONE` | nothing |\n",
    }
    config = {"environment": {"documented_in": "docs/environment.md", "prefixes": "ENGINE_"}}
    assert [entry[:3] for entry in said(check(files, config))] == [
        ("env-doc", "a.cpp", 2),
        ("env-doc", "docs/environment.md", 2),
    ]


BODY = "Row: PORT-CPU\nTested: yes\n\nSigned-off-by: A <a@example.com>\n"
FIELDS = RecordFields(fields=("Row", "Tested"), row_field="Row", trailers=("Signed-off-by",))
ROWS = Matrix(
    "m", (Lane(id="cpu", backend="cpu", row="PORT-CPU"), Lane(id="rocm-gfx1100", backend="rocm", row="PORT-ROCM"))
)


@pytest.mark.parametrize(
    ("body", "messages"),
    [
        (BODY, []),
        (BODY.replace("Tested: yes\n", ""), ["the field 'Tested' is missing"]),
        (BODY.replace("yes", "<!-- say how -->"), ["the field 'Tested' is empty"]),
        (BODY.replace("PORT-CPU", "PORT-CPUS"), 
         ["Row names 'PORT-CPUS', which no lane of the matrix carries; did you mean 'PORT-CPU'?"]),
        (BODY.replace("\nSigned", "\n---\nSigned"), 
         ["the trailer 'Signed-off-by' stands behind the --- of line 4, where git deletes it"]),
        (BODY.replace("Signed-off-by: A <a@example.com>\n", ""), ["the trailer 'Signed-off-by' is missing"]),
        ("Green on rocm-gfx1100.\n" + BODY, 
         ["the text speaks of lane rocm-gfx1100, which row 'PORT-ROCM' owns, and Row does not name it"]),
    ],
)  # fmt: skip
def test_the_text_of_a_pull_request_holds_what_the_project_requires(body: str, messages: list[str]) -> None:
    assert [message for _, message, _ in record.problems(body, FIELDS, ROWS)] == messages


def test_the_text_is_read_from_the_environment(check: Checker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "body.md").write_text("Row:\n")
    monkeypatch.setenv("GREENLANE_PR_BODY", str(tmp_path / "body.md"))
    report = check({"a.cpp": "int a;\n"}, {"record": {"fields": ["Row"]}})
    assert [(finding.rule, finding.line) for finding in report.findings] == [("record", 1)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('set(GPU_TARGETS "gxf90a;gfx90a")', None),
        ('set(GPU_TARGETS "gfx99a;gfx90a")', "no compiler knows the target 'gfx99a'"),
        ('set(GPU_TARGETS "gfx1100")', "lacks gfx90a"),
        ('if(GPU_TARGETS MATCHES "gfx9")', None),
        ('# set(GPU_TARGETS "gfx1100")', None),
    ],
)
def test_targets_in_build_scripts_are_compared_with_the_matrix(check: Checker, line: str, message: str | None) -> None:
    report = check({"CMakeLists.txt": line + "\n", "a.cpp": "int a;\n"})
    assert [finding.rule for finding in report.findings] == (["arch-list"] if message else [])
    assert message is None or message in report.findings[0].message


def test_a_defined_macro_that_is_zero_is_not_off(check: Checker) -> None:
    lanes = (
        Lane(id="cpu", backend="cpu", macros={"WITH_GPU": "0"}),
        Lane(id="gpu", backend="gpu", macros={"WITH_GPU": "1"}),
    )
    report = check({"a.cpp": "#ifdef WITH_GPU\nint a;\n#endif\n"}, lanes=lanes)
    assert said(report) == [("guard-negation", "a.cpp", 1, ("cpu",))]


def test_a_macro_without_a_fallback_is_a_missing_arm(check: Checker) -> None:
    header = "#pragma once\n#if defined(USE_CUDA)\n#define WIDTH 32\n#elif defined(USE_HIP)\n#define WIDTH 64\n#endif\n"
    report = check({"w.h": header, "a.cpp": '#include "w.h"\nint width() { return WIDTH; }\n'})
    assert said(report) == [("guard-missing-arm", "w.h", 2, ("cpu",))]


@pytest.mark.parametrize(
    ("declared", "defined", "differs"),
    [
        ("void f(int a);", "void f(long a) {}", True),
        ("void f(const float* a);", "void f(float* a) {}", True),
        ("void f(int& a);", "void f(int a) {}", True),
        ("void f(const float *a, int n = 3);", "void f(float const* const a, const int n) {}", False),
        ("void f(std::size_t a);", "void f(unsigned long a) {}", False),
        ("void f(float a[4]);", "void f(float* a) {}", False),
        ("void f(int a);", "void f(Count a) {}", False),
        ("void f(int a); void f(long a);", "void f(long a) {} void f(int a) {}", False),
        ("void f(int a);", "void f(int a) {} void f(long a) {}", False),
        ("struct S { void f(int a); };", "void S::f(long a) {}", True),
        ("struct S { void f(int a); void f(long a); };", "void S::f(long a) {}", False),
    ],
)
def test_types_are_compared_where_both_are_built_in(check: Checker, declared: str, defined: str, differs: bool) -> None:
    files = {
        "a.h": f"#pragma once\n#include <cstddef>\nusing Count = int;\n{declared}\n",
        "a.cpp": f'#include "a.h"\n{defined}\n',
    }
    red = [finding for finding in check(files).findings if finding.severity != "note"]
    assert [finding.rule for finding in red] == (["declaration-mismatch"] if differs else [])


CUDA_USE = "#ifdef USE_CUDA\n#include <cuda_runtime.h>\n#endif\n"


@pytest.mark.parametrize(
    ("source", "lanes"),
    [
        (CUDA_USE + "void go(cudaStream_t stream);\n", ("cpu",)),  # ROCm may translate its sources
        (CUDA_USE + "#ifdef USE_CUDA\nvoid go(cudaStream_t stream);\n#endif\n", ()),
        (CUDA_USE + "using cudaStream_t = void*;\nvoid go(cudaStream_t stream);\n", ()),
        (CUDA_USE + "#include <torch/extension.h>\nvoid go(cudaStream_t stream);\n", ()),
        (CUDA_USE + "int go(int cudaCount) { return cudaCount; }\n", ()),
        (CUDA_USE + "#ifdef USE_CUDA\nint go() { return __builtin_amdgcn_perm(1, 2, 3); }\n#endif\n", ("cuda",)),
    ],
)
def test_a_vendors_name_in_a_lane_without_the_vendor_is_found(
    check: Checker, source: str, lanes: tuple[str, ...]
) -> None:
    found = said(check({"a.cpp": source}))
    assert [(rule, where) for rule, _, _, where in found] == ([("alias-gap", lanes)] if lanes else [])


KERNELS = """#ifdef USE_HIP
#include <hip/hip_runtime.h>
#else
#include <cuda_runtime.h>
#endif
{guard}
__device__ float op_scaled_by_two(float x) {{ return 2 * x; }}
__device__ float hexp2(float x) {{ return x; }}
#endif
__global__ void k(float* x) {{ x[0] = op_scaled_by_two(x[0]) + hexp2(x[0]); }}
"""


def test_an_own_name_that_another_vendors_lane_alone_declares_is_found_beside_vendor_headers(check: Checker) -> None:
    report = check({"a.cu": KERNELS.format(guard="#ifdef USE_HIP")})
    assert said(report) == [("link-presence", "a.cu", 10, ("cuda",))]  # hexp2 may be the toolkit's
    assert "op_scaled_by_two" in report.findings[0].message


OPENED = "int f(int n) {\n#ifdef USE_CUDA\n  if (n) {\n    n++;\n#endif\n"
END = "  return n;\n}\n"


@pytest.mark.parametrize(
    ("source", "lanes"),
    [
        (OPENED + "#if defined(USE_CUDA) || defined(USE_HIP)\n  }\n#endif\n" + END, ("rocm",)),
        (OPENED + "#ifdef USE_HIP\n  }\n#endif\n" + END, ("cuda", "rocm")),
        (OPENED + "#ifdef USE_CUDA\n  }\n#endif\n" + END, ()),
        ("#define CLOSE }\nint f(int n) {\n#ifdef USE_CUDA\n  CLOSE\n#else\n  }\n#endif\n", ()),
        ("int f(int n) {\n#ifdef NOBODY_KNOWS\n  }\n#else\n  }\n#endif\n", ()),
    ],
)
def test_braces_that_balance_in_another_lane_alone_are_a_missing_arm(
    check: Checker, source: str, lanes: tuple[str, ...]
) -> None:
    found = [entry for entry in said(check({"a.cpp": source})) if entry[0] == "guard-missing-arm"]
    assert {lane for entry in found for lane in entry[3]} == set(lanes)


def test_a_macro_that_only_sources_define_is_off_where_they_did_not(check: Checker) -> None:
    files = {
        "a.cu": "#ifdef USE_HIP\n#include <hip/hip_runtime.h>\n#else\n#include <cuda_runtime.h>\n#endif\n"
        "#ifdef USE_CUDA\n#define FAST_PATH\n#endif\n"
        "#ifdef FAST_PATH\n__device__ int only_fast_one(int n) { return n; }\n#endif\n"
        "__global__ void k(int* x) { x[0] = only_fast_one(x[0]); }\n"
    }
    assert said(check(files)) == [("link-presence", "a.cu", 12, ("rocm",))]
    assert said(check({**files, "build.sh": "hipcc -DFAST_PATH a.cu\n"})) == []
