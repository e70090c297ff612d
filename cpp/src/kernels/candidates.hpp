// Candidates of the gradient drop, 16 rows side by side: from and to memory, and the exchange that
// sorts them.
#pragma once

#include "kernels/lanes.hpp"

BOOKRAG_KERNELS_BEGIN
namespace {

typedef std::int64_t L8 __attribute__((vector_size(64)));

// A candidate of 16 rows: the score as an integer of the same order in the upper half of a word,
// the column's complement in the lower, so that one comparison puts larger scores first and equal
// ones by column. Quarter q (two words) of `low` holds rows 4 q and 4 q + 1, that of `high` the two
// after: where interleaving within quarters puts them, the cheapest shuffle there is.
struct Candidates {
    L8 low;
    L8 high;
};

// How many rows a shuffle takes on: all 16 where a register holds them, else 4.
#if defined(__AVX512F__)
typedef F16 Floats;
typedef I16 Ints;
#define BOOKRAG_QUARTERS(a, b, c, d)                                                            \
    a, b, c, d, a + 4, b + 4, c + 4, d + 4, a + 8, b + 8, c + 8, d + 8, a + 12, b + 12, c + 12, \
        d + 12
constexpr int kSecond = 16;  // number of the second operand's first lane
#else
typedef float Floats __attribute__((vector_size(16)));
typedef std::int32_t Ints __attribute__((vector_size(16)));
#define BOOKRAG_QUARTERS(a, b, c, d) a, b, c, d
constexpr int kSecond = 4;
#endif
constexpr int kRows = static_cast<int>(sizeof(Floats) / sizeof(float));
typedef float F4 __attribute__((vector_size(16)));
typedef float F4u __attribute__((vector_size(16), aligned(4)));
typedef std::int32_t I4 __attribute__((vector_size(16)));
typedef std::int32_t I4u __attribute__((vector_size(16), aligned(4)));

// Its own inverse: a float's bits as a signed integer of the same order, and back.
template <typename V>
BOOKRAG_INLINE void flip(V& bits) {
    bits ^= (bits >> 31) & 0x7FFFFFFF;
}

// ---------------------------------------------------------------- memory <-> candidates

// The 4x4 matrices in the quarters of the four, transposed.
template <typename V>
BOOKRAG_INLINE void transpose(V (&m)[4]) {
    constexpr int s = kSecond;
    const V ab = __builtin_shufflevector(m[0], m[1], BOOKRAG_QUARTERS(0, s, 1, s + 1));
    const V ba = __builtin_shufflevector(m[0], m[1], BOOKRAG_QUARTERS(2, s + 2, 3, s + 3));
    const V cd = __builtin_shufflevector(m[2], m[3], BOOKRAG_QUARTERS(0, s, 1, s + 1));
    const V dc = __builtin_shufflevector(m[2], m[3], BOOKRAG_QUARTERS(2, s + 2, 3, s + 3));
    m[0] = __builtin_shufflevector(ab, cd, BOOKRAG_QUARTERS(0, 1, s, s + 1));
    m[1] = __builtin_shufflevector(ab, cd, BOOKRAG_QUARTERS(2, 3, s + 2, s + 3));
    m[2] = __builtin_shufflevector(ba, dc, BOOKRAG_QUARTERS(0, 1, s, s + 1));
    m[3] = __builtin_shufflevector(ba, dc, BOOKRAG_QUARTERS(2, 3, s + 2, s + 3));
}

// Four floats of rows 0, 4, 8 and 12 from `from` on, or of the first alone.
BOOKRAG_INLINE void gather(Floats& to, const float* from, [[maybe_unused]] int k) {
#if defined(__AVX512F__)
    const F4 a = *reinterpret_cast<const F4u*>(from);
    const F4 b = *reinterpret_cast<const F4u*>(from + 4 * k);
    const F4 c = *reinterpret_cast<const F4u*>(from + 8 * k);
    const F4 d = *reinterpret_cast<const F4u*>(from + 12 * k);
    const F8 ab = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
    const F8 cd = __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7);
    to = __builtin_shufflevector(ab, cd, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#else
    to = *reinterpret_cast<const F4u*>(from);
#endif
}

BOOKRAG_INLINE void scatter(std::int32_t* to, [[maybe_unused]] int k, const Ints& from) {
#if defined(__AVX512F__)
    *reinterpret_cast<I4u*>(to) = __builtin_shufflevector(from, from, 0, 1, 2, 3);
    *reinterpret_cast<I4u*>(to + 4 * k) = __builtin_shufflevector(from, from, 4, 5, 6, 7);
    *reinterpret_cast<I4u*>(to + 8 * k) = __builtin_shufflevector(from, from, 8, 9, 10, 11);
    *reinterpret_cast<I4u*>(to + 12 * k) = __builtin_shufflevector(from, from, 12, 13, 14, 15);
#else
    *reinterpret_cast<I4u*>(to) = from;
#endif
}

// Part `part` of a vector of other elements: one of four, or all there is.
#if defined(__AVX512F__)
typedef std::int32_t Part __attribute__((vector_size(64), may_alias));
#else
typedef std::int32_t Part __attribute__((vector_size(16), may_alias));
#endif
template <typename V>
BOOKRAG_INLINE Part& part_of(V& whole, int part) {
    return reinterpret_cast<Part*>(&whole)[part];
}
template <typename V>
BOOKRAG_INLINE const Part& part_of(const V& whole, int part) {
    return reinterpret_cast<const Part*>(&whole)[part];
}

// Of four columns; the last group overlaps the one before.
constexpr int group_start(int group, int k) {
    return 4 * group + 4 <= k ? 4 * group : k - 4;
}

// 16 rows of k >= 4 columns. A lane of `good` becomes 0 where a score is NaN or +inf.
BOOKRAG_INLINE void read(const float* rows, int k, Ints& good, Candidates* out) {
    constexpr int s = kSecond;
    for (int part = 0; part < 16 / kRows; ++part) {
        for (int group = 0; group < (k + 3) / 4; ++group) {
            const int start = group_start(group, k);
            Floats column[4];
            for (int i = 0; i < 4; ++i) {
                gather(column[i], rows + (part * kRows + i) * k + start, k);
            }
            transpose(column);
            for (int i = 0; i < 4; ++i) {
                Floats score = column[i];
                good &= score < __builtin_inff();
                score += 0.0F;  // -0 becomes +0: they are equal
                Ints upper = reinterpret_cast<Ints>(score);
                flip(upper);
                const Ints lower = Ints{} + ~(start + i);
                part_of(out[start + i].low, part) =
                    __builtin_shufflevector(lower, upper, BOOKRAG_QUARTERS(0, s, 1, s + 1));
                part_of(out[start + i].high, part) =
                    __builtin_shufflevector(lower, upper, BOOKRAG_QUARTERS(2, s + 2, 3, s + 3));
            }
        }
    }
}

BOOKRAG_INLINE void write_order(const Candidates* sorted, int k, std::int32_t* rows) {
    constexpr int s = kSecond;
    for (int part = 0; part < 16 / kRows; ++part) {
        for (int group = 0; group < (k + 3) / 4; ++group) {
            const int start = group_start(group, k);
            Ints column[4];
            for (int i = 0; i < 4; ++i) {
                const Candidates& c = sorted[start + i];
                column[i] = ~__builtin_shufflevector(part_of(c.low, part), part_of(c.high, part),
                                                     BOOKRAG_QUARTERS(0, 2, s, s + 2));
            }
            transpose(column);
            for (int i = 0; i < 4; ++i) {
                scatter(rows + (part * kRows + i) * k + start, k, column[i]);
            }
        }
    }
}

// The scores of the rows of one part.
BOOKRAG_INLINE void scores_of(const Candidates& from, int part, Floats& to) {
    constexpr int s = kSecond;
    Ints bits = __builtin_shufflevector(part_of(from.low, part), part_of(from.high, part),
                                        BOOKRAG_QUARTERS(1, 3, s + 1, s + 3));
    flip(bits);
    to = reinterpret_cast<Floats>(bits);
}

// Puts the better of each row's two first.
BOOKRAG_INLINE void exchange(L8& first, L8& second) {
    const L8 larger = first > second ? first : second;
    second = first > second ? second : first;
    first = larger;
}
BOOKRAG_INLINE void exchange(Candidates& first, Candidates& second) {
    exchange(first.low, second.low);
    exchange(first.high, second.high);
}

}  // namespace
BOOKRAG_KERNELS_END
