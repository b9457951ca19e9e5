// Matrix instructions: WMMA on wave32 and MFMA on wave64. D = A * B + C over the registers of a whole wave.

#pragma once

#include "float.h"

namespace greenlane {

enum class Number { kF16, kBf16, kI8, kU8, kI4, kU4, kF32, kF64 };

// One element of a lane's packed operand, as the type that it is accumulated in.
template <Number Kind, class Sum>
inline Sum element(const u32 (*packed)[kLanes], int lane, int index) {
  if constexpr (Kind == Number::kF32) return float_of(packed[index][lane]);
  if constexpr (Kind == Number::kF64) return double_of(pair(packed[2 * index][lane], packed[2 * index + 1][lane]));
  constexpr int bits = Kind == Number::kF16 || Kind == Number::kBf16 ? 16
                       : Kind == Number::kI8 || Kind == Number::kU8  ? 8
                                                                     : 4;
  const u32 raw = packed[index * bits / 32][lane] >> (index * bits % 32);
  if constexpr (Kind == Number::kF16) return (Sum)bits_as<f16>((u16)raw);
  if constexpr (Kind == Number::kBf16) return (Sum)float_of(raw << 16);
  if constexpr (Kind == Number::kI8) return (Sum)(i8)raw;
  if constexpr (Kind == Number::kU8) return (Sum)(u8)raw;
  if constexpr (Kind == Number::kI4) return (Sum)((i32)(raw << 28) >> 28);
  if constexpr (Kind == Number::kU4) return (Sum)(raw & 15);
  __builtin_unreachable();
}

template <class Sum>
inline Sum fused(Sum a, Sum b, Sum c) {
  if constexpr (sizeof(Sum) == 8)
    return __builtin_fma(a, b, c);
  else
    return __builtin_fmaf(a, b, c);
}
inline i32 fused(i32 a, i32 b, i32 c) {
  return (i32)((u32)a * (u32)b + (u32)c);
}
inline i64 fused(i64 a, i64 b, i64 c) {
  return a * b + c;
}

// 16x16 result. Depth elements lie in each lane; on gfx11 both halves of the wave hold the same rows, on gfx12 the
// upper half holds the second half of the depth.
template <bool Gfx12, int Depth>
struct WmmaLayout {
  static constexpr int kPerLane = Gfx12 ? Depth / 2 : Depth;
  static int lane(int row, int k) { return Gfx12 ? row + 16 * (k / kPerLane) : row; }
  static int slot(int k) { return Gfx12 ? k % kPerLane : k; }
  static int row(int reg, int lane) { return Gfx12 ? reg + 8 * (lane / 16) : 2 * reg + lane / 16; }
};

template <bool Gfx12, int Depth, Number A, Number B, class Sum, int Registers>
inline void wmma(const u32 (&a)[Registers][kLanes], const u32 (&b)[Registers][kLanes], Sum (&sums)[8][kLanes]) {
  using Layout = WmmaLayout<Gfx12, Depth>;
  Sum rows[16][Depth], columns[16][Depth];
  for (int i = 0; i < 16; i++)
    for (int k = 0; k < Depth; k++) {
      rows[i][k] = element<A, Sum>(a, Layout::lane(i, k), Layout::slot(k));
      columns[i][k] = element<B, Sum>(b, Layout::lane(i, k), Layout::slot(k));
    }
  for (int reg = 0; reg < 8; reg++)
    for (int lane = 0; lane < 32; lane++) {
      Sum sum = sums[reg][lane];
      for (int k = 0; k < Depth; k++) sum = fused(rows[Layout::row(reg, lane)][k], columns[lane % 16][k], sum);
      sums[reg][lane] = sum;
    }
}

template <int Registers>
inline void spill(const U32 (&from)[Registers], u32 (&to)[Registers][kLanes]) {
  __builtin_memcpy(to, from, sizeof to);
}

// Full-width sums in eight registers.
template <bool Gfx12, int Depth, Number A, Number B, class Sum, int Registers>
inline void wmma32(const U32 (&a)[Registers], const U32 (&b)[Registers], const U32 (&c)[8], U32 (&d)[8]) {
  u32 left[Registers][kLanes], right[Registers][kLanes];
  spill(a, left);
  spill(b, right);
  Sum sums[8][kLanes];
  __builtin_memcpy(sums, c, sizeof sums);
  wmma<Gfx12, Depth, A, B, Sum>(left, right, sums);
  __builtin_memcpy(d, sums, sizeof sums);
}

// The same for integers, with sums that stop at the ends of 32 bits.
template <bool Gfx12, int Depth, Number A, Number B, int Registers>
inline void wmma32_clamped(const U32 (&a)[Registers], const U32 (&b)[Registers], const U32 (&c)[8], U32 (&d)[8]) {
  u32 left[Registers][kLanes], right[Registers][kLanes];
  spill(a, left);
  spill(b, right);
  i64 sums[8][kLanes];
  for (int reg = 0; reg < 8; reg++)
    for (int lane = 0; lane < kLanes; lane++) sums[reg][lane] = (i32)c[reg][lane];
  wmma<Gfx12, Depth, A, B, i64>(left, right, sums);
  for (int reg = 0; reg < 8; reg++)
    for (int lane = 0; lane < kLanes; lane++) {
      const i64 sum = sums[reg][lane], low = INT32_MIN, high = INT32_MAX;
      d[reg][lane] = (u32)(sum < low ? low : sum > high ? high : sum);
    }
}

// Halves as sums: on gfx11 one per register, in the half that `upper` names; on gfx12 two per register.
template <bool Gfx12, Number Kind, int Registers, int Results>
inline void wmma16(const U32 (&a)[Registers], const U32 (&b)[Registers], const U32 (&c)[Results], U32 (&d)[Results],
                   bool upper) {
  u32 left[Registers][kLanes], right[Registers][kLanes];
  spill(a, left);
  spill(b, right);
  float sums[8][kLanes];
  for (int reg = 0; reg < 8; reg++)
    for (int lane = 0; lane < kLanes; lane++) {
      const u32 word = c[Gfx12 ? reg / 2 : reg][lane];
      const u16 half = (u16)((Gfx12 ? reg % 2 == 1 : upper) ? word >> 16 : word);
      sums[reg][lane] = Kind == Number::kF16 ? (float)bits_as<f16>(half) : float_of((u32)half << 16);
    }
  wmma<Gfx12, 16, Kind, Kind, float>(left, right, sums);
  for (int reg = 0; reg < 8; reg++) {
    F32 wide;
    __builtin_memcpy(&wide, sums[reg], sizeof wide);
    const U16 half = Kind == Number::kF16 ? (U16)convert<F16>(wide) : to_bf16(wide);
    U32& to = d[Gfx12 ? reg / 2 : reg];
    to = (Gfx12 ? reg % 2 == 1 : upper) ? with_high16(to, half) : with_low16(to, half);
  }
}

// MFMA: Blocks independent Size x Size products of depth Depth. Each lane holds Depth / (64 / Size / Blocks) elements.
template <int Size, int Depth, int Blocks, Number A, Number B, class Sum, int Sources, int Results>
inline void mfma(const U32 (&a)[Sources], const U32 (&b)[Sources], const U32 (&c)[Results], U32 (&d)[Results]) {
  constexpr int kPerLane = Size * Depth * Blocks / 64, kLanesPerBlock = 64 / Blocks;
  constexpr int kWords = sizeof(Sum) / 4, kRegisters = Results / kWords;
  u32 left[Sources][kLanes], right[Sources][kLanes];
  spill(a, left);
  spill(b, right);
  for (int reg = 0; reg < kRegisters; reg++)
    for (int lane = 0; lane < 64 && lane < kLanes; lane++) {
      constexpr int kGroup = sizeof(Sum) == 8 ? 1 : 4;  // consecutive rows in one lane
      constexpr int kPerBlock = kRegisters * 64 / (Size * Size) == Blocks && Size > 4 ? Size * Size / 64 : kRegisters;
      const int block = Size == 4 ? lane / 4 : reg / kPerBlock;
      const int local = Size == 4 ? reg : reg % kPerBlock;
      const int column = lane % Size;
      const int row =
          Size == 4 ? local : (local / kGroup) * (kGroup * (64 / Size)) + (lane / Size) * kGroup + local % kGroup;
      Sum sum;
      if constexpr (kWords == 2) {
        sum = bits_as<Sum>(pair(c[2 * reg][lane], c[2 * reg + 1][lane]));
      } else {
        sum = bits_as<Sum>((u32)c[reg][lane]);
      }
      for (int k = 0; k < Depth; k++) {
        const int offset = block * kLanesPerBlock + (k / kPerLane) * Size;
        sum = fused(element<A, Sum>(left, offset + row, k % kPerLane),
                    element<B, Sum>(right, offset + column, k % kPerLane), sum);
      }
      if constexpr (kWords == 2) {
        const u64 bits = bits_as<u64>(sum);
        d[2 * reg][lane] = (u32)bits;
        d[2 * reg + 1][lane] = (u32)(bits >> 32);
      } else {
        d[reg][lane] = bits_as<u32>(sum);
      }
    }
}

}  // namespace greenlane
