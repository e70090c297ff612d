// 64 bytes, in kParts registers, and the integer steps of dot products, for kernel sources.
// Elsewhere than on x86 a register is 16 bytes, which compilers know how to vectorise. Integers:
// equal results everywhere.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/lanes.hpp"

BOOKRAG_KERNELS_BEGIN
namespace {

#if defined(__AVX512BW__)
typedef __m512i Bytes;
BOOKRAG_INLINE void load_part(Bytes& to, const void* from) {
    to = _mm512_loadu_si512(from);
}
BOOKRAG_INLINE void store_part(std::int32_t* to, const Bytes& from) {
    _mm512_storeu_si512(to, from);
}
BOOKRAG_INLINE void fill_part(Bytes& to, std::int32_t four_bytes) {
    to = _mm512_set1_epi32(four_bytes);
}
BOOKRAG_INLINE Bytes low_nibbles(const Bytes& x) {
    return _mm512_and_si512(x, _mm512_set1_epi8(15));
}
BOOKRAG_INLINE Bytes high_nibbles(const Bytes& x) {
    return _mm512_and_si512(_mm512_srli_epi16(x, 4), _mm512_set1_epi8(15));
}
BOOKRAG_INLINE Bytes pair_products(const Bytes& rows, const Bytes& query) {
    return _mm512_maddubs_epi16(rows, query);
}
BOOKRAG_INLINE Bytes add16(const Bytes& a, const Bytes& b) {
    return _mm512_add_epi16(a, b);
}
BOOKRAG_INLINE Bytes add_pairs(const Bytes& sums, const Bytes& x) {
    return _mm512_add_epi32(sums, _mm512_madd_epi16(x, _mm512_set1_epi16(1)));
}
#elif defined(__AVX2__)
typedef __m256i Bytes;
BOOKRAG_INLINE void load_part(Bytes& to, const void* from) {
    to = _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
BOOKRAG_INLINE void store_part(std::int32_t* to, const Bytes& from) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), from);
}
BOOKRAG_INLINE void fill_part(Bytes& to, std::int32_t four_bytes) {
    to = _mm256_set1_epi32(four_bytes);
}
BOOKRAG_INLINE Bytes low_nibbles(const Bytes& x) {
    return _mm256_and_si256(x, _mm256_set1_epi8(15));
}
BOOKRAG_INLINE Bytes high_nibbles(const Bytes& x) {
    return _mm256_and_si256(_mm256_srli_epi16(x, 4), _mm256_set1_epi8(15));
}
BOOKRAG_INLINE Bytes pair_products(const Bytes& rows, const Bytes& query) {
    return _mm256_maddubs_epi16(rows, query);
}
BOOKRAG_INLINE Bytes add16(const Bytes& a, const Bytes& b) {
    return _mm256_add_epi16(a, b);
}
BOOKRAG_INLINE Bytes add_pairs(const Bytes& sums, const Bytes& x) {
    return _mm256_add_epi32(sums, _mm256_madd_epi16(x, _mm256_set1_epi16(1)));
}
#elif defined(__SSSE3__)
typedef __m128i Bytes;
BOOKRAG_INLINE void load_part(Bytes& to, const void* from) {
    to = _mm_loadu_si128(static_cast<const __m128i*>(from));
}
BOOKRAG_INLINE void store_part(std::int32_t* to, const Bytes& from) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), from);
}
BOOKRAG_INLINE void fill_part(Bytes& to, std::int32_t four_bytes) {
    to = _mm_set1_epi32(four_bytes);
}
BOOKRAG_INLINE Bytes low_nibbles(const Bytes& x) {
    return _mm_and_si128(x, _mm_set1_epi8(15));
}
BOOKRAG_INLINE Bytes high_nibbles(const Bytes& x) {
    return _mm_and_si128(_mm_srli_epi16(x, 4), _mm_set1_epi8(15));
}
BOOKRAG_INLINE Bytes pair_products(const Bytes& rows, const Bytes& query) {
    return _mm_maddubs_epi16(rows, query);
}
BOOKRAG_INLINE Bytes add16(const Bytes& a, const Bytes& b) {
    return _mm_add_epi16(a, b);
}
BOOKRAG_INLINE Bytes add_pairs(const Bytes& sums, const Bytes& x) {
    return _mm_add_epi32(sums, _mm_madd_epi16(x, _mm_set1_epi16(1)));
}
#else
struct Bytes {
    union {
        std::uint8_t bytes[16];
        std::int16_t words[8];
        std::int32_t longs[4];
    };
};
BOOKRAG_INLINE void load_part(Bytes& to, const void* from) {
    __builtin_memcpy(&to, from, sizeof to);
}
BOOKRAG_INLINE void store_part(std::int32_t* to, const Bytes& from) {
    __builtin_memcpy(to, &from, sizeof from);
}
BOOKRAG_INLINE void fill_part(Bytes& to, std::int32_t four_bytes) {
    for (auto& x : to.longs) x = four_bytes;
}
BOOKRAG_INLINE Bytes low_nibbles(const Bytes& x) {
    Bytes out;
    for (int i = 0; i < 16; ++i) out.bytes[i] = x.bytes[i] & 15;
    return out;
}
BOOKRAG_INLINE Bytes high_nibbles(const Bytes& x) {
    Bytes out;
    for (int i = 0; i < 16; ++i) out.bytes[i] = static_cast<std::uint8_t>(x.bytes[i] >> 4);
    return out;
}
BOOKRAG_INLINE Bytes pair_products(const Bytes& rows, const Bytes& query) {
    Bytes out;
    for (int i = 0; i < 8; ++i) {
        const int even = rows.bytes[2 * i] * static_cast<std::int8_t>(query.bytes[2 * i]);
        const int odd = rows.bytes[2 * i + 1] * static_cast<std::int8_t>(query.bytes[2 * i + 1]);
        out.words[i] = static_cast<std::int16_t>(even + odd);
    }
    return out;
}
BOOKRAG_INLINE Bytes add16(const Bytes& a, const Bytes& b) {
    Bytes out;
    for (int i = 0; i < 8; ++i) {
        out.words[i] = static_cast<std::int16_t>(a.words[i] + b.words[i]);
    }
    return out;
}
BOOKRAG_INLINE Bytes add_pairs(const Bytes& sums, const Bytes& x) {
    Bytes out;
    for (int i = 0; i < 4; ++i) out.longs[i] = sums.longs[i] + x.words[2 * i] + x.words[2 * i + 1];
    return out;
}
#endif

}  // namespace
BOOKRAG_KERNELS_END
