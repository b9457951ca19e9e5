"""Instructions as llvm-objdump prints them."""

from __future__ import annotations

import pytest

from greenlane.emulator import disassembly

LISTING = """
code_object:	file format elf64-amdgpu

Disassembly of section .text:

0000000000006200 <embed>:
	s_load_b32 s3, s[0:1], 0x2c                                // 000000006200: F40000C0 F800002C
	v_cmpx_gt_i32_e64 s4, v1                                   // 000000006208: D4C4007E 00020204
	s_cbranch_execz 46                                         // 000000006210: BFA5002E <embed+0xf4>
	s_delay_alu instid0(SALU_CYCLE_1) | instskip(NEXT) | instid1(SALU_CYCLE_1)// 000000006214: BF870499
	v_dual_mov_b32 v3, 0 :: v_dual_mov_b32 v2, s5              // 000000006218: CA100080 03020005
	s_endpgm                                                   // 000000006220: BFB00000
"""


def test_addresses_words_and_targets_are_read() -> None:
    (name, found), *others = disassembly.parse(LISTING).items()
    assert (name, others, len(found)) == ("embed", [], 6)
    assert [hex(one.address) for one in found[:3]] == ["0x6200", "0x6208", "0x6210"]
    assert found[0].words == (0xF40000C0, 0xF800002C)
    assert found[2].target == 0x62F4
    assert found[0].end == 0x6208


def test_dual_instruction_has_two_halves() -> None:
    dual = disassembly.parse(LISTING)["embed"][4]
    assert (dual.mnemonic, dual.operands) == ("v_mov_b32", ("v3", "0"))
    assert dual.second is not None
    assert (dual.second.mnemonic, dual.second.operands) == ("v_mov_b32", ("v2", "s5"))


@pytest.mark.parametrize(
    ("text", "mnemonic", "encoding", "operands", "modifiers"),
    [
        ("v_add_f32_e32 v0, 1.0, v2", "v_add_f32", "e32", ("v0", "1.0", "v2"), {}),
        ("global_load_b64 v[0:1], v[2:3], off offset:-16 glc", "global_load_b64", "", ("v[0:1]", "v[2:3]", "off"),
         {"offset": "-16", "glc": ""}),
        ("v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", "v_mov_b32", "dpp", ("v0", "v1"),
         {"quad_perm": "[1,0,3,2]", "row_mask": "0xf", "bank_mask": "0xf"}),
        ("v_pk_fma_f16 v0, v1, v2, v3 op_sel_hi:[1,0,1]", "v_pk_fma_f16", "", ("v0", "v1", "v2", "v3"),
         {"op_sel_hi": "[1,0,1]"}),
        ("s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)", "s_sendmsg", "", ("sendmsg(MSG_DEALLOC_VGPRS)",), {}),
        ("buffer_load_dword v1, v2, s[0:3], 0 offen offset:4", "buffer_load_dword", "", ("v1", "v2", "s[0:3]", "0"),
         {"offen": "", "offset": "4"}),
        ("ds_swizzle_b32 v0, v1 offset:swizzle(SWAP,16)", "ds_swizzle_b32", "", ("v0", "v1"),
         {"offset": "swizzle(SWAP,16)"}),
        ("s_endpgm", "s_endpgm", "", (), {}),
    ],
)  # fmt: skip
def test_instruction_is_taken_apart(
    text: str, mnemonic: str, encoding: str, operands: tuple[str, ...], modifiers: dict[str, str]
) -> None:
    one = disassembly.instruction(text)
    assert (one.mnemonic, one.encoding, one.operands, dict(one.modifiers)) == (mnemonic, encoding, operands, modifiers)
