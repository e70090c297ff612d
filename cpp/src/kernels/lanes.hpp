// Vectors of a fixed number of lanes for kernel sources, whatever registers the CPU has: a 64-byte
// vector is one AVX-512 register, two of AVX2, four of SSE or NEON; the arithmetic is the same.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/select.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

BOOKRAG_KERNELS_BEGIN
namespace {

typedef float F16 __attribute__((vector_size(64)));
typedef double D8 __attribute__((vector_size(64)));
typedef std::int32_t I16 __attribute__((vector_size(64)));
typedef float F8 __attribute__((vector_size(32)));
// The same for addresses that are only as aligned as their elements are.
typedef float F16u __attribute__((vector_size(64), aligned(4)));
typedef double D8u __attribute__((vector_size(64), aligned(8)));
typedef std::int32_t I16u __attribute__((vector_size(64), aligned(4)));
typedef float F8u __attribute__((vector_size(32), aligned(4)));

#define BOOKRAG_INLINE [[gnu::always_inline]] static inline

// Before loops over registers: unrolled early enough for the compiler to keep them in registers.
#if defined(__clang__)
#define BOOKRAG_UNROLL _Pragma("unroll")
#else
#define BOOKRAG_UNROLL _Pragma("GCC unroll 8")
#endif

// 16 lanes in whole registers. Where registers are smaller, compilers keep 64-byte vectors in
// memory, and take comparisons of them apart lane by lane: these are for the hottest loops.
#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
constexpr int kParts = 16 / kLanes;
typedef float FloatPart __attribute__((vector_size(4 * kLanes)));
typedef std::int32_t IntPart __attribute__((vector_size(4 * kLanes)));
typedef float FloatPartU __attribute__((vector_size(4 * kLanes), aligned(4)));

struct Lanes {
    FloatPart part[kParts];
};

BOOKRAG_INLINE void load(Lanes& to, const float* from) {
    BOOKRAG_UNROLL
    for (int p = 0; p < kParts; ++p) {
        to.part[p] = *reinterpret_cast<const FloatPartU*>(from + kLanes * p);
#if defined(__SSE2__)
        // Loaded once, not again for every use: an unaligned load often takes two cache lines.
        __asm__("" : "+v"(to.part[p]));
#endif
    }
}
BOOKRAG_INLINE void store(float* to, const Lanes& from) {
    BOOKRAG_UNROLL
    for (int p = 0; p < kParts; ++p) {
        *reinterpret_cast<FloatPartU*>(to + kLanes * p) = from.part[p];
    }
}

// One bit a lane of a comparison's result.
BOOKRAG_INLINE std::uint32_t lane_bits(const IntPart& mask) {
#if defined(__AVX512F__)
    return _mm512_movepi32_mask(reinterpret_cast<__m512i>(mask));
#elif defined(__AVX2__)
    return static_cast<std::uint32_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(mask)));
#elif defined(__SSE2__)
    return static_cast<std::uint32_t>(_mm_movemask_ps(reinterpret_cast<__m128>(mask)));
#else
    std::uint32_t bits = 0;
    for (int i = 0; i < kLanes; ++i) bits |= (mask[i] != 0 ? 1U : 0U) << i;
    return bits;
#endif
}

// Results by reference: a 64-byte vector as a return value has an ABI that depends on the flags.
BOOKRAG_INLINE void load(F16& to, const float* from) {
    to = *reinterpret_cast<const F16u*>(from);
}
BOOKRAG_INLINE void store(float* to, const F16& from) {
    *reinterpret_cast<F16u*>(to) = from;
}

}  // namespace
BOOKRAG_KERNELS_END
