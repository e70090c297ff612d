#include "kernels/similarity.hpp"

#include "kernels/lanes.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

BOOKRAG_KERNELS_BEGIN

namespace {

constexpr float kInfinity = __builtin_inff();

// Lanes added pairwise: 0 + 8, 1 + 9, ... then 0 + 4, ... the same tree everywhere.
BOOKRAG_INLINE float sum_of(const F16& lanes) {
    float s[16];
    store(s, lanes);
    for (int width = 8; width > 0; width /= 2) {
        for (int i = 0; i < width; ++i) s[i] += s[i + width];
    }
    return s[0];
}

BOOKRAG_INLINE bool any(const I16& mask) {
#if defined(__AVX512F__)
    return _mm512_movepi32_mask(reinterpret_cast<__m512i>(mask)) != 0;
#else
    std::int32_t some = 0;
    for (int i = 0; i < 16; ++i) some |= mask[i];
    return some != 0;
#endif
}

// 16 values as float32, from either type.
BOOKRAG_INLINE void load_wide(F16& to, const float* from) {
    load(to, from);
}

BOOKRAG_INLINE void load_wide(F16& to, const std::uint16_t* from) {
#if defined(__AVX512F__)  // gcc 12 warns of the intrinsic without a mask
    to = reinterpret_cast<F16>(
        _mm512_maskz_cvtph_ps(0xFFFF, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))));
#elif defined(__F16C__)
    for (int part = 0; part < 2; ++part) {
        const __m256 wide =
            _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 8 * part)));
        __builtin_memcpy(reinterpret_cast<float*>(&to) + 8 * part, &wide, sizeof wide);
    }
#else
    // Exponent and mantissa moved up, then multiplied by 2^112: the difference of the exponents'
    // biases. Exact for subnormal halves too.
    typedef std::uint16_t H16 __attribute__((vector_size(32)));
    H16 half;
    __builtin_memcpy(&half, from, sizeof half);
    const I16 bits = __builtin_convertvector(half, I16);
    const I16 size = (bits & 0x7FFF) << 13;
    const F16 value = reinterpret_cast<F16>(size) * 0x1p112F;
    const F16 whole = size >= 0x0F800000 ? F16{} + kInfinity : value;
    to = reinterpret_cast<F16>(reinterpret_cast<I16>(whole) | ((bits & 0x8000) << 16));
#endif
}

// The last, incomplete 16 values, filled up with zeros.
template <typename Value>
BOOKRAG_INLINE void load_tail(F16& to, const Value* from, std::int64_t count) {
    Value padded[16] = {};
    for (std::int64_t i = 0; i < count; ++i) padded[i] = from[i];
    load_wide(to, padded);
}

// Rows at once: independent chains of additions fill the pipeline. With Squares the rows' squared
// norms as well: every value is read once.
template <int Rows, bool Squares, typename Value>
BOOKRAG_INLINE void dots_of(const float* query, const Value* const (&rows)[Rows], std::int64_t d,
                            float* out, float* squares) {
    F16 sum[Rows] = {};
    F16 square[Rows] = {};
    std::int64_t c = 0;
    for (; c + 16 <= d; c += 16) {
        F16 q;
        load(q, query + c);
        for (int r = 0; r < Rows; ++r) {
            F16 x;
            load_wide(x, rows[r] + c);
            sum[r] += q * x;
            if (Squares) square[r] += x * x;
        }
    }
    if (c < d) {
        F16 q;
        load_tail(q, query + c, d - c);
        for (int r = 0; r < Rows; ++r) {
            F16 x;
            load_tail(x, rows[r] + c, d - c);
            sum[r] += q * x;
            if (Squares) square[r] += x * x;
        }
    }
    for (int r = 0; r < Rows; ++r) {
        out[r] = sum_of(sum[r]);
        if (Squares) squares[r] = sum_of(square[r]);
    }
}

template <bool Squares, typename Value>
BOOKRAG_INLINE void dots_with_all(const float* query, const Value* rows, std::int64_t n,
                                  std::int64_t d, float* out, float* squares) {
    std::int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const Value* const four[4] = {rows + i * d, rows + (i + 1) * d, rows + (i + 2) * d,
                                      rows + (i + 3) * d};
        dots_of<4, Squares>(query, four, d, out + i, Squares ? squares + i : nullptr);
    }
    for (; i < n; ++i) {
        const Value* const one[1] = {rows + i * d};
        dots_of<1, Squares>(query, one, d, out + i, Squares ? squares + i : nullptr);
    }
}

template <typename Value>
BOOKRAG_INLINE void dots_with(const float* query, const Value* rows, std::int64_t n, std::int64_t d,
                              float* out, float* squares) {
    if (squares == nullptr) {
        dots_with_all<false>(query, rows, n, d, out, nullptr);
    } else {
        dots_with_all<true>(query, rows, n, d, out, squares);
    }
}

void dots(const float* query, const float* rows, std::int64_t n, std::int64_t d, float* out,
          float* squares) {
    dots_with(query, rows, n, d, out, squares);
}

void dots_of_halves(const float* query, const std::uint16_t* rows, std::int64_t n, std::int64_t d,
                    float* out, float* squares) {
    dots_with(query, rows, n, d, out, squares);
}

void dots_at(const float* query, const float* rows, const std::int32_t* ids, std::int64_t count,
             std::int64_t d, float* out) {
    std::int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        const float* const four[4] = {rows + ids[i] * d, rows + ids[i + 1] * d,
                                      rows + ids[i + 2] * d, rows + ids[i + 3] * d};
        dots_of<4, false>(query, four, d, out + i, nullptr);
    }
    for (; i < count; ++i) {
        const float* const one[1] = {rows + ids[i] * d};
        dots_of<1, false>(query, one, d, out + i, nullptr);
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

void inverse_roots(const float* squares, std::int64_t n, float* out) {
    for (std::int64_t i = 0; i < n; i += 4) {
        typedef float F4 __attribute__((vector_size(16)));
        F4 square = {};
        const std::int64_t count = n - i < 4 ? n - i : 4;
        for (std::int64_t r = 0; r < count; ++r) square[r] = squares[i + r];
#if defined(__SSE2__)
        const auto root = reinterpret_cast<F4>(_mm_sqrt_ps(reinterpret_cast<__m128>(square)));
#else
        F4 root;
        for (int r = 0; r < 4; ++r) root[r] = __builtin_sqrtf(square[r]);
#endif
        const F4 inverse = (square > 1e-20F) & (square < 1e30F) ? 1.0F / root : F4{};
        for (std::int64_t r = 0; r < count; ++r) out[i + r] = inverse[r];
    }
}

void widen(const std::uint16_t* half, std::int64_t count, float* out) {
    F16 wide;
    std::int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        load_wide(wide, half + i);
        store(out + i, wide);
    }
    if (i == count) return;
    load_tail(wide, half + i, count - i);
    for (std::int64_t lane = 0; i < count; ++i, ++lane) out[i] = wide[lane];
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
    I16 bad{};
    std::int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        F16 v;
        load(v, values + i);
        bad |= ~((v < kInfinity) & (v > -kInfinity));
    }
    bool finite = !any(bad);
    for (; i < count; ++i) finite &= values[i] < kInfinity && values[i] > -kInfinity;
    return finite;
}

}  // namespace

extern const SimilarityKernels similarity_kernels{
    dots, dots_of_halves, dots_at, squared_norms, inverse_roots, widen, best_matches, all_finite};

BOOKRAG_KERNELS_END
