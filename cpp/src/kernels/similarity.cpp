#include "kernels/similarity.hpp"

#include "kernels/lanes.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

BOOKRAG_KERNELS_BEGIN

namespace {

constexpr float kInfinity = __builtin_inff();

typedef float F4 __attribute__((vector_size(16)));

// Lanes added pairwise: 0 + 8, 1 + 9, ... then 0 + 4, ... the same tree everywhere. The sum stays
// spread over the last four lanes.
BOOKRAG_INLINE F4 quarter_of(const Lanes& lanes) {
#if defined(__AVX512F__)
    const FloatPart& all = lanes.part[0];
    const F8 half = __builtin_shufflevector(all, all, 0, 1, 2, 3, 4, 5, 6, 7) +
                    __builtin_shufflevector(all, all, 8, 9, 10, 11, 12, 13, 14, 15);
#elif defined(__AVX2__)
    const F8 half = lanes.part[0] + lanes.part[1];
#endif
#if defined(__AVX2__)
    return __builtin_shufflevector(half, half, 0, 1, 2, 3) +
           __builtin_shufflevector(half, half, 4, 5, 6, 7);
#else
    return (lanes.part[0] + lanes.part[2]) + (lanes.part[1] + lanes.part[3]);
#endif
}

// The sums of four, as many additions as for one: 0 + 2 and 1 + 3 of two side by side, then both.
BOOKRAG_INLINE void sums_of(const Lanes (&lanes)[4], float* out) {
    F4 q[4];
    BOOKRAG_UNROLL
    for (int r = 0; r < 4; ++r) q[r] = quarter_of(lanes[r]);
    const F4 first = __builtin_shufflevector(q[0], q[1], 0, 1, 4, 5) +
                     __builtin_shufflevector(q[0], q[1], 2, 3, 6, 7);
    const F4 second = __builtin_shufflevector(q[2], q[3], 0, 1, 4, 5) +
                      __builtin_shufflevector(q[2], q[3], 2, 3, 6, 7);
    const F4 sum = __builtin_shufflevector(first, second, 0, 2, 4, 6) +
                   __builtin_shufflevector(first, second, 1, 3, 5, 7);
    __builtin_memcpy(out, &sum, sizeof sum);
}

template <int Rows>
BOOKRAG_INLINE void sums_of(const Lanes (&lanes)[Rows], float* out) {
    BOOKRAG_UNROLL
    for (int r = 0; r < Rows; ++r) {
        const F4 q = quarter_of(lanes[r]);
        out[r] = (q[0] + q[2]) + (q[1] + q[3]);
    }
}

// 16 values as float32, from either type.
BOOKRAG_INLINE void load_wide(Lanes& to, const float* from) {
    load(to, from);
}

BOOKRAG_INLINE void load_wide(Lanes& to, const std::uint16_t* from) {
    BOOKRAG_UNROLL
    for (int p = 0; p < kParts; ++p) {
        const std::uint16_t* const part = from + kLanes * p;
#if defined(__AVX512F__)  // gcc 12 warns of the intrinsic without a mask
        to.part[p] = reinterpret_cast<FloatPart>(_mm512_maskz_cvtph_ps(
            0xFFFF, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(part))));
#elif defined(__F16C__)
        to.part[p] = reinterpret_cast<FloatPart>(
            _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(part))));
#else
        // Exponent and mantissa moved up, then multiplied by 2^112: the difference of the
        // exponents' biases. Exact for subnormal halves too.
        typedef std::uint16_t Halves __attribute__((vector_size(2 * kLanes)));
        Halves half;
        __builtin_memcpy(&half, part, sizeof half);
        const IntPart bits = __builtin_convertvector(half, IntPart);
        const IntPart size = (bits & 0x7FFF) << 13;
        const FloatPart value = reinterpret_cast<FloatPart>(size) * 0x1p112F;
        const FloatPart whole = size >= 0x0F800000 ? FloatPart{} + kInfinity : value;
        to.part[p] =
            reinterpret_cast<FloatPart>(reinterpret_cast<IntPart>(whole) | ((bits & 0x8000) << 16));
#endif
    }
}

// The last, incomplete 16 values, filled up with zeros.
template <typename Value>
BOOKRAG_INLINE void load_tail(Lanes& to, const Value* from, std::int64_t count) {
    Value padded[16] = {};
    for (std::int64_t i = 0; i < count; ++i) padded[i] = from[i];
    load_wide(to, padded);
}

BOOKRAG_INLINE void add_product(Lanes& sum, const Lanes& a, const Lanes& b) {
    BOOKRAG_UNROLL
    for (int p = 0; p < kParts; ++p) sum.part[p] += a.part[p] * b.part[p];
}

// Rows at once: independent chains of additions fill the pipeline. With Squares the rows' squared
// norms as well: every value is read once. `next` are the rows to come: fetched early, the memory
// is busy all the time.
template <int Rows, bool Squares, typename Value>
BOOKRAG_INLINE void dots_of(const float* query, const Value* const (&rows)[Rows],
                            const Value* const (&next)[Rows], std::int64_t d, float* out,
                            float* squares) {
    Lanes sum[Rows] = {};
    Lanes square[Rows] = {};
    Lanes q, x;
    std::int64_t c = 0;
    for (; c + 16 <= d; c += 16) {
        load_wide(q, query + c);
        BOOKRAG_UNROLL
        for (int r = 0; r < Rows; ++r) {
            __builtin_prefetch(next[r] + c);
            load_wide(x, rows[r] + c);
            add_product(sum[r], q, x);
            if (Squares) add_product(square[r], x, x);
        }
    }
    if (c < d) {
        load_tail(q, query + c, d - c);
        BOOKRAG_UNROLL
        for (int r = 0; r < Rows; ++r) {
            load_tail(x, rows[r] + c, d - c);
            add_product(sum[r], q, x);
            if (Squares) add_product(square[r], x, x);
        }
    }
    sums_of(sum, out);
    if (Squares) sums_of(square, squares);
}

template <bool Squares, typename Value>
BOOKRAG_INLINE void dots_with(const float* query, const Value* rows, std::int64_t n, std::int64_t d,
                              float* out, float* squares) {
#if defined(__AVX512F__)
    constexpr int kRows = 4;
#else
    constexpr int kRows = Squares ? 2 : 4;  // more sums would not stay in registers
#endif
    const Value* some[kRows];
    const Value* next[kRows];
    std::int64_t i = 0;
    for (; i + kRows <= n; i += kRows) {
        for (int r = 0; r < kRows; ++r) {
            some[r] = rows + (i + r) * d;
            // Behind the last row may lie the caller's next ones; if not, nothing happens.
            next[r] = reinterpret_cast<const Value*>(reinterpret_cast<std::uintptr_t>(some[r]) +
                                                     static_cast<std::uintptr_t>(kRows * d) *
                                                         sizeof(Value));
        }
        dots_of<kRows, Squares>(query, some, next, d, out + i, Squares ? squares + i : nullptr);
    }
    for (; i < n; ++i) {
        const Value* const one[1] = {rows + i * d};
        dots_of<1, Squares>(query, one, one, d, out + i, Squares ? squares + i : nullptr);
    }
}

void dots(const float* query, const float* rows, std::int64_t n, std::int64_t d, float* out,
          float* squares) {
    if (squares == nullptr) {
        dots_with<false>(query, rows, n, d, out, nullptr);
    } else {
        dots_with<true>(query, rows, n, d, out, squares);
    }
}

void dots_of_halves(const float* query, const std::uint16_t* rows, std::int64_t n, std::int64_t d,
                    float* out, float* squares) {
    if (squares == nullptr) {
        dots_with<false>(query, rows, n, d, out, nullptr);
    } else {
        dots_with<true>(query, rows, n, d, out, squares);
    }
}

void dots_at(const float* query, const float* rows, const std::int32_t* ids, std::int64_t count,
             std::int64_t d, float* out) {
    const float* some[4];
    const float* next[4];
    std::int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        for (int r = 0; r < 4; ++r) {
            some[r] = rows + ids[i + r] * d;
            next[r] = rows + ids[i + r + 4 < count ? i + r + 4 : i + r] * d;
        }
        dots_of<4, false>(query, some, next, d, out + i, nullptr);
    }
    for (; i < count; ++i) {
        const float* const one[1] = {rows + ids[i] * d};
        dots_of<1, false>(query, one, one, d, out + i, nullptr);
    }
}

void squared_norms(const float* rows, std::int64_t n, std::int64_t d, double* out) {
    for (std::int64_t i = 0; i < n; ++i) {
        const float* row = rows + i * d;
        D8 sum{};
        std::int64_t c = 0;
        for (; c + 8 <= d; c += 8) {
            const F8 x = *reinterpret_cast<const F8u*>(row + c);
            const D8 wide = __builtin_convertvector(x, D8);
            sum += wide * wide;
        }
        for (std::int64_t lane = 0; c < d; ++c, ++lane) {
            const double x = row[c];
            sum[lane] += x * x;
        }
        out[i] = ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
    }
}

BOOKRAG_INLINE void inverse_roots_of(Lanes& square) {
    BOOKRAG_UNROLL
    for (int p = 0; p < kParts; ++p) {
        FloatPart& x = square.part[p];
#if defined(__AVX512F__)  // gcc 12 warns of the intrinsic without a mask
        const auto root =
            reinterpret_cast<FloatPart>(_mm512_maskz_sqrt_ps(0xFFFF, reinterpret_cast<__m512>(x)));
#elif defined(__AVX2__)
        const auto root = reinterpret_cast<FloatPart>(_mm256_sqrt_ps(reinterpret_cast<__m256>(x)));
#elif defined(__SSE2__)
        const auto root = reinterpret_cast<FloatPart>(_mm_sqrt_ps(reinterpret_cast<__m128>(x)));
#else
        FloatPart root;
        for (int lane = 0; lane < kLanes; ++lane) root[lane] = __builtin_sqrtf(x[lane]);
#endif
        x = ((x > 1e-20F) & (x < 1e30F)) ? 1.0F / root : FloatPart{};
    }
}

void inverse_roots(const float* squares, std::int64_t n, float* out) {
    Lanes lanes;
    std::int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        load_wide(lanes, squares + i);
        inverse_roots_of(lanes);
        store(out + i, lanes);
    }
    if (i == n) return;
    load_tail(lanes, squares + i, n - i);
    inverse_roots_of(lanes);
    __builtin_memcpy(out + i, &lanes, sizeof(float) * static_cast<std::size_t>(n - i));
}

void widen(const std::uint16_t* half, std::int64_t count, float* out) {
    Lanes wide;
    std::int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        load_wide(wide, half + i);
        store(out + i, wide);
    }
    if (i == count) return;
    load_tail(wide, half + i, count - i);
    __builtin_memcpy(out + i, &wide, sizeof(float) * static_cast<std::size_t>(count - i));
}

// ---------------------------------------------------------------- late interaction

// 32 query tokens with `Tokens` of the document: a block of sums that stays in registers.
template <int Tokens>
BOOKRAG_INLINE void match(const float* columns, std::int64_t padded, const float* tokens,
                          std::int64_t d, F16 (&best)[2]) {
    F16 sum[Tokens][2] = {};
    for (std::int64_t c = 0; c < d; ++c) {
        F16 q[2];
        load(q[0], columns + c * padded);
        load(q[1], columns + c * padded + 16);
        for (int t = 0; t < Tokens; ++t) {
            const float x = tokens[t * d + c];
            sum[t][0] += q[0] * x;
            sum[t][1] += q[1] * x;
        }
    }
    for (int t = 0; t < Tokens; ++t) {
        for (int half = 0; half < 2; ++half) {
            best[half] = sum[t][half] > best[half] ? sum[t][half] : best[half];
        }
    }
}

void best_matches(const float* columns, std::int64_t padded, const float* tokens, std::int64_t n,
                  std::int64_t d, float* best) {
    for (std::int64_t first = 0; first < padded; first += 32) {
        F16 most[2] = {F16{} - kInfinity, F16{} - kInfinity};
        std::int64_t t = 0;
        for (; t + 8 <= n; t += 8) match<8>(columns + first, padded, tokens + t * d, d, most);
        for (; t < n; ++t) match<1>(columns + first, padded, tokens + t * d, d, most);
        store(best + first, most[0]);
        store(best + first + 16, most[1]);
    }
}

bool all_finite(const float* values, std::int64_t count) {
    IntPart good[kParts];
    for (auto& part : good) part = ~IntPart{};
    Lanes v;
    std::int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        load(v, values + i);
        BOOKRAG_UNROLL
        for (int p = 0; p < kParts; ++p) {
            good[p] &= (v.part[p] < kInfinity) & (v.part[p] > -kInfinity);
        }
    }
    bool finite = true;
    for (const auto& part : good) finite &= lane_bits(part) == (1U << kLanes) - 1;
    for (; i < count; ++i) finite &= values[i] < kInfinity && values[i] > -kInfinity;
    return finite;
}

}  // namespace

extern const SimilarityKernels similarity_kernels{
    dots, dots_of_halves, dots_at, squared_norms, inverse_roots, widen, best_matches, all_finite};

BOOKRAG_KERNELS_END
