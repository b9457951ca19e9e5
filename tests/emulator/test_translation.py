"""Instructions become C++; what is not known is refused with its text."""

from __future__ import annotations

import pytest

from greenlane.emulator import matrix_ops, memory, scalar, vector, vector_special
from greenlane.emulator.disassembly import instruction
from greenlane.emulator.errors import UnknownInstruction
from greenlane.emulator.kernel import without_padding
from greenlane.emulator.operands import Registers

TRANSLATORS = (vector.translate, scalar.translate, vector_special.translate, memory.translate, matrix_ops.translate)


def translated(text: str, lanes: int = 32, generation: int = 11) -> str:
    registers = Registers(lanes, generation)
    for translator in TRANSLATORS:
        code = translator(instruction(text), registers)
        if code is not None:
            return code
    raise UnknownInstruction(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("v_add_f32_e32 v0, 1.0, v2", ["splat(0x3f800000u)", "v0 = select(EXEC, (U32)(a + b), v0)"]),
        ("v_add_f32_e64 v0, -v1, |v2| clamp", ["neg((F32)(v1))", "magnitude((F32)(v2))", "clamped("]),
        ("v_mul_f64 v[0:1], v[2:3], 0.5", ["join(v2, v3)", "0x3fe0000000000000ull"]),
        ("v_add_f16_e32 v0.h, v1.l, v2.h", ["low16(v1)", "high16(v2)", "with_high16(v0"]),
        ("v_cmp_gt_i32_e64 s4, v1, 7", ["s4 = (mask_of(a > b)) & EXEC"]),
        ("s_and_b32 s0, s1, vcc_lo", ["s1", "vcc_lo", "scc = r != 0", "s0 = "]),
        ("s_mov_b64 exec, s[2:3]", ["pair(s2, s3)", "exec_lo = ", "exec_hi = "]),
        (
            "global_store_b64 v0, v[2:3], s[4:5] offset:8",
            ["store<Global, 2>", "address64(pair(s4, s5), v0, 8)", "{v2, v3}"],
        ),
        ("ds_load_2addr_b32 v[0:1], v2 offset0:1 offset1:5", ["where + 4u", "where + 20u"]),
        ("ds_add_rtn_u32 v0, v1, v2 offset:4", ["atomic32<Lds, Add, u32>", "v1 + 4u"]),
        ("global_atomic_cmpswap_b32 v0, v[2:3], v[4:5], off glc", ["compare_swap32<Global>", "v4, v5"]),
        ("s_bitcmp1_b32 s29, 8", ["scc = (s29 >> (0x8u & 31) & 1) == 1"]),
    ],
)
def test_instruction_becomes_cpp(text: str, parts: list[str]) -> None:
    code = translated(text)
    for part in parts:
        assert part in code


def test_wave64_masks_are_register_pairs() -> None:
    code = translated("v_cmp_gt_i32_e32 vcc, v1, v2", lanes=64, generation=9)
    assert "vcc_lo = " in code
    assert "vcc_hi = " in code


def test_gfx9_clears_the_upper_half_where_later_ones_keep_it() -> None:
    assert "with_low16" in translated("v_add_f16_e32 v0, v1, v2", generation=11)
    assert "with_low16" not in translated("v_add_f16_e32 v0, v1, v2", lanes=64, generation=9)


@pytest.mark.parametrize(
    "text",
    [
        "v_nonsense_f32 v0, v1",
        "s_gibberish_b32 s0, s1",
        "v_add_f32_e64 v0, v1, v2 strange:3",
        "ds_gws_barrier v0 gds",
        "image_load v0, v1, s[0:7]",
        "v_mul_lo_u32 v0, v1, v2 clamp",
    ],
)
def test_unknown_instruction_is_refused_by_name(text: str) -> None:
    with pytest.raises(UnknownInstruction, match=text.split()[0]):
        translated(text)


def test_padding_behind_a_kernel_is_no_instruction() -> None:
    kernel = [instruction("s_endpgm"), instruction("v_illegal"), instruction("s_code_end")]
    assert [one.mnemonic for one in without_padding(kernel)] == ["s_endpgm"]


def test_integer_tiles_may_saturate_and_others_may_not() -> None:
    tile = "v_wmma_i32_16x16x16_iu8 v[0:7], v[8:11], v[12:15], v[16:23] neg_lo:[1,1,0] clamp"
    assert "wmma32_clamped<false, 16, Number::kI8, Number::kI8>(a, b, c, d)" in translated(tile)
    with pytest.raises(UnknownInstruction):
        translated("v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[24:31] clamp")
