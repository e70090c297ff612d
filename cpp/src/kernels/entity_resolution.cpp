#include "kernels/entity_resolution.hpp"

#include "kernels/lanes.hpp"

BOOKRAG_KERNELS_BEGIN

namespace {

typedef std::int64_t L8 __attribute__((vector_size(64)));
typedef std::uint8_t B16 __attribute__((vector_size(16)));

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
template <int K>
BOOKRAG_INLINE void gather(Floats& to, const float* from) {
#if defined(__AVX512F__)
    const F4 a = *reinterpret_cast<const F4u*>(from);
    const F4 b = *reinterpret_cast<const F4u*>(from + 4 * K);
    const F4 c = *reinterpret_cast<const F4u*>(from + 8 * K);
    const F4 d = *reinterpret_cast<const F4u*>(from + 12 * K);
    const F8 ab = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
    const F8 cd = __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7);
    to = __builtin_shufflevector(ab, cd, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#else
    to = *reinterpret_cast<const F4u*>(from);
#endif
}

template <int K>
BOOKRAG_INLINE void scatter(std::int32_t* to, const Ints& from) {
#if defined(__AVX512F__)
    *reinterpret_cast<I4u*>(to) = __builtin_shufflevector(from, from, 0, 1, 2, 3);
    *reinterpret_cast<I4u*>(to + 4 * K) = __builtin_shufflevector(from, from, 4, 5, 6, 7);
    *reinterpret_cast<I4u*>(to + 8 * K) = __builtin_shufflevector(from, from, 8, 9, 10, 11);
    *reinterpret_cast<I4u*>(to + 12 * K) = __builtin_shufflevector(from, from, 12, 13, 14, 15);
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

template <int K>
constexpr int group_start(int group) {  // of four columns; the last group overlaps the one before
    return 4 * group + 4 <= K ? 4 * group : K - 4;
}

template <int K>
BOOKRAG_INLINE void read(const float* rows, Ints& good, Candidates (&out)[K]) {
    constexpr int s = kSecond;
    for (int part = 0; part < 16 / kRows; ++part) {
        for (int group = 0; group < (K + 3) / 4; ++group) {
            const int start = group_start<K>(group);
            Floats column[4];
            for (int i = 0; i < 4; ++i) {
                gather<K>(column[i], rows + (part * kRows + i) * K + start);
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

template <int K>
BOOKRAG_INLINE void write_order(const Candidates (&sorted)[K], std::int32_t* rows) {
    constexpr int s = kSecond;
    for (int part = 0; part < 16 / kRows; ++part) {
        for (int group = 0; group < (K + 3) / 4; ++group) {
            const int start = group_start<K>(group);
            Ints column[4];
            for (int i = 0; i < 4; ++i) {
                const Candidates& c = sorted[start + i];
                column[i] = ~__builtin_shufflevector(part_of(c.low, part), part_of(c.high, part),
                                                     BOOKRAG_QUARTERS(0, 2, s, s + 2));
            }
            transpose(column);
            for (int i = 0; i < 4; ++i) {
                scatter<K>(rows + (part * kRows + i) * K + start, column[i]);
            }
        }
    }
}

// The scores of 16 rows in their order.
BOOKRAG_INLINE void scores_of(const Candidates& from, F16& to) {
    constexpr int s = kSecond;
    for (int part = 0; part < 16 / kRows; ++part) {
        Ints bits = __builtin_shufflevector(part_of(from.low, part), part_of(from.high, part),
                                            BOOKRAG_QUARTERS(1, 3, s + 1, s + 3));
        flip(bits);
        part_of(to, part) = bits;
    }
}

// ---------------------------------------------------------------- network and rule

BOOKRAG_INLINE void exchange(L8& first, L8& second) {
    const L8 larger = first > second ? first : second;
    second = first > second ? second : first;
    first = larger;
}

// Batcher's merge exchange (Knuth, The Art of Computer Programming 3, 5.2.2, Algorithm M): a
// sorting network for any K.
struct Network {
    int count = 0;
    int first[64] = {};
    int second[64] = {};
};

template <int K>
constexpr Network network() {
    Network out;
    constexpr int top = K > 8 ? 8 : K > 4 ? 4 : K > 2 ? 2 : K > 1 ? 1 : 0;
    for (int p = top; p > 0; p /= 2) {
        int q = top;
        int r = 0;
        int d = p;
        while (true) {
            for (int i = 0; i < K - d; ++i) {
                if ((i & p) != r) continue;
                out.first[out.count] = i;
                out.second[out.count++] = i + d;
            }
            if (q == p) break;
            d = q - p;
            q /= 2;
            r = p;
        }
    }
    return out;
}

// Best first. Written out exchange by exchange, so that all candidates stay in registers.
template <int K, int Step = 0>
BOOKRAG_INLINE void sort(Candidates (&c)[K]) {
    constexpr Network steps = network<K>();
    if constexpr (Step < steps.count) {
        exchange(c[steps.first[Step]].low, c[steps.second[Step]].low);
        exchange(c[steps.first[Step]].high, c[steps.second[Step]].high);
        sort<K, Step + 1>(c);
    }
}

template <int K>
BOOKRAG_INLINE void block(const float* rows, float g, float min_score, Ints& good,
                          std::uint8_t* cases, std::int32_t* sizes, std::int32_t* order) {
    Candidates c[K];
    read<K>(rows, good, c);
    sort<K>(c);
    F16 previous;
    scores_of(c[0], previous);
    I16 alive = previous >= min_score;  // lanes are 0 or -1
    I16 size = -alive;
    for (int j = 1; j < K; ++j) {
        F16 score;
        scores_of(c[j], score);
        alive &= score >= g * previous;
        size -= alive;
        previous = score;
    }
    *reinterpret_cast<I16u*>(sizes) = size;
    const I16 kind = ((size == 1) & 1) | ((size > 1) & (size < K) & 2);
    const B16 narrow = __builtin_convertvector(kind, B16);
    __builtin_memcpy(cases, &narrow, 16);
    write_order<K>(c, order);
}

template <int K>
bool drop(const float* scores, std::int64_t n, float g, float min_score, std::uint8_t* cases,
          std::int32_t* sizes, std::int32_t* order) {
    Ints good = Ints{} - 1;
    std::int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        block<K>(scores + i * K, g, min_score, good, cases + i, sizes + i, order + i * K);
    }
    if (i < n) {
        float rows[16 * K] = {};
        std::uint8_t some_cases[16];
        std::int32_t some_sizes[16];
        std::int32_t some_order[16 * K];
        const auto left = static_cast<std::size_t>(n - i);
        __builtin_memcpy(rows, scores + i * K, left * K * sizeof(float));
        block<K>(rows, g, min_score, good, some_cases, some_sizes, some_order);
        __builtin_memcpy(cases + i, some_cases, left);
        __builtin_memcpy(sizes + i, some_sizes, left * sizeof(std::int32_t));
        __builtin_memcpy(order + i * K, some_order, left * K * sizeof(std::int32_t));
    }
    std::int32_t every = -1;
    for (int lane = 0; lane < kRows; ++lane) every &= good[lane];
    return every != 0;
}

template <int K>
bool drop_any(const float* scores, std::int64_t n, std::int32_t k, float g, float min_score,
              std::uint8_t* cases, std::int32_t* sizes, std::int32_t* order) {
    if constexpr (K == ResolutionKernels::kMaxColumns) {
        return drop<K>(scores, n, g, min_score, cases, sizes, order);
    } else {
        return k == K ? drop<K>(scores, n, g, min_score, cases, sizes, order)
                      : drop_any<K + 1>(scores, n, k, g, min_score, cases, sizes, order);
    }
}

}  // namespace

extern const ResolutionKernels resolution_kernels{drop_any<ResolutionKernels::kMinColumns>};

BOOKRAG_KERNELS_END
