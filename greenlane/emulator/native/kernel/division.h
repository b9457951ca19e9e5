// The three steps of an exact division: scale the operands, refine with a scaled fma, fix the special cases.

#pragma once

#include "float.h"

namespace greenlane {

template <class T>
struct Format;
template <>
struct Format<float> {
  static constexpr int kExponentBits = 8, kMantissaBits = 23, kScale = 64, kFar = 96, kSmallNumerator = 23;
  static constexpr float kNan = __builtin_nanf("");
  using Bits = u32;
};
template <>
struct Format<double> {
  static constexpr int kExponentBits = 11, kMantissaBits = 52, kScale = 128, kFar = 768, kSmallNumerator = 53;
  static constexpr double kNan = __builtin_nan("");
  using Bits = u64;
};

template <class T>
inline int biased_exponent(T x) {
  using F = Format<T>;
  return bits_as<typename F::Bits>(x) >> F::kMantissaBits & ((1 << F::kExponentBits) - 1);
}
template <class T>
inline bool is_denormal(T x) {
  return x != 0 && biased_exponent(x) == 0;
}
inline float scaled(float x, int e) {
  return ::ldexpf(x, e);
}
inline double scaled(double x, int e) {
  return ::ldexp(x, e);
}

// Scales `value`, which is the denominator or the numerator; true in `flag` when the fma must scale back.
template <class T>
inline T div_scale_lane(T value, T denominator, T numerator, bool& flag) {
  using F = Format<T>;
  const bool is_denominator = bits_as<typename F::Bits>(value) == bits_as<typename F::Bits>(denominator);
  const bool is_numerator = bits_as<typename F::Bits>(value) == bits_as<typename F::Bits>(numerator);
  const int numerator_exponent = biased_exponent(numerator), denominator_exponent = biased_exponent(denominator);
  flag = false;
  if (numerator == 0 || denominator == 0) return F::kNan;
  if (numerator_exponent - denominator_exponent >= F::kFar) {
    flag = true;
    return is_denominator ? scaled(value, F::kScale) : value;
  }
  if (is_denormal(denominator)) return scaled(value, F::kScale);
  // The reciprocal is judged in double, so that for single precision it is never tiny.
  const bool tiny_reciprocal = is_denormal(1.0 / (double)denominator),
             tiny_quotient = is_denormal(numerator / denominator);
  if (tiny_reciprocal && tiny_quotient) {
    flag = true;
    return is_denominator ? scaled(value, F::kScale) : value;
  }
  if (tiny_reciprocal) return scaled(value, -F::kScale);
  if (tiny_quotient) {
    flag = true;
    return is_numerator && !is_denominator ? scaled(value, F::kScale) : value;
  }
  if (numerator_exponent <= F::kSmallNumerator) return scaled(value, F::kScale);
  return value;
}

template <class V>
inline V div_scale(V value, V denominator, V numerator, Mask& flags) {
  using T = typename Element<V>::type;
  V result;
  flags = 0;
  for (int i = 0; i < kLanes; i++) {
    bool flag;
    result[i] = div_scale_lane<T>(value[i], denominator[i], numerator[i], flag);
    flags |= Mask{flag} << i;
  }
  return result;
}

// Scaled back up when the addend is large, down when it is small.
template <class V>
inline V div_fmas(V a, V b, V c, Mask flags) {
  using T = typename Element<V>::type;
  V result = fma(a, b, c);
  constexpr int bias = (1 << (Format<T>::kExponentBits - 1)) - 1;
  for_lanes(flags, [&](int i) {
    const int up = biased_exponent<T>(c[i]) > bias ? Format<T>::kScale : -Format<T>::kScale;
    result[i] = scaled((T)result[i], up);
  });
  return result;
}

template <class T>
inline T div_fixup_lane(T quotient, T denominator, T numerator) {
  const bool negative = ::signbit(denominator) != ::signbit(numerator);
  const T sign = negative ? (T)-1 : (T)1;
  if (::isnan(numerator)) return numerator;
  if (::isnan(denominator)) return denominator;
  if (denominator == 0 && numerator == 0) return -Format<T>::kNan;
  if (::isinf(denominator) && ::isinf(numerator)) return -Format<T>::kNan;
  if (denominator == 0 || ::isinf(numerator)) return sign * (T)INFINITY;
  if (::isinf(denominator) || numerator == 0) return sign * (T)0;
  return ::copysign(quotient, sign);
}
inline F32 div_fixup(F32 q, F32 d, F32 n) {
  return lanewise<F32>([](float a, float b, float c) { return div_fixup_lane(a, b, c); }, q, d, n);
}
inline F64 div_fixup(F64 q, F64 d, F64 n) {
  return lanewise<F64>([](double a, double b, double c) { return div_fixup_lane(a, b, c); }, q, d, n);
}
inline F16 div_fixup(F16 q, F16 d, F16 n) {
  return convert<F16>(div_fixup(convert<F32>(q), convert<F32>(d), convert<F32>(n)));
}

// Chunks of 2/pi for the exact reduction of large arguments: 53 bits from bit 53*chunk plus the argument's exponent.
inline F64 trig_preop(F64 x, U32 chunk) {
  static const u32 digits[38] = {0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab,
                                 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
                                 0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b,
                                 0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7,
                                 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1,
                                 0x1f8d5d08, 0x56033046, 0xfc7b6bab};
  F64 result;
  for (int i = 0; i < kLanes; i++) {
    const int exponent = biased_exponent<double>(x[i]);
    int shift = (chunk[i] & 31) * 53 + (exponent > 1077 ? exponent - 1077 : 0);
    u64 bits = 0;
    for (int k = 0; k < 53; k++) {
      const int at = shift + k;
      bits = bits << 1 | (at < 38 * 32 ? digits[at / 32] >> (31 - at % 32) & 1 : 0);
    }
    const int scale = -53 - shift + (exponent >= 1968 ? 128 : 0);
    result[i] = ::ldexp((double)bits, scale);
  }
  return result;
}

}  // namespace greenlane
