// Vectors of a fixed number of lanes for kernel sources, whatever registers the CPU has: a 64-byte
// vector is one AVX-512 register, two of AVX2, four of SSE or NEON; the arithmetic is the same.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/select.hpp"

#if defined(__AVX512F__)
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

// Results by reference: a 64-byte vector as a return value has an ABI that depends on the flags.
BOOKRAG_INLINE void load(F16& to, const float* from) {
    to = *reinterpret_cast<const F16u*>(from);
}
BOOKRAG_INLINE void store(float* to, const F16& from) {
    *reinterpret_cast<F16u*>(to) = from;
}

}  // namespace
BOOKRAG_KERNELS_END
