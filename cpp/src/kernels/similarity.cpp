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

// The last, incomplete 16 values, filled up with zeros.
BOOKRAG_INLINE void load_tail(F16& to, const float* from, std::int64_t count) {
    float padded[16] = {};
    for (std::int64_t i = 0; i < count; ++i) padded[i] = from[i];
    load(to, padded);
}

// Rows at once: independent chains of additions fill the pipeline.
template <int Rows>
BOOKRAG_INLINE void dots_of(const float* query, const float* rows, std::int64_t d,
                            std::int64_t stride, float* out) {
    F16 sum[Rows] = {};
    std::int64_t c = 0;
    for (; c + 16 <= d; c += 16) {
        F16 q;
        load(q, query + c);
        for (int r = 0; r < Rows; ++r) {
            F16 x;
            load(x, rows + r * stride + c);
            sum[r] += q * x;
        }
    }
    if (c < d) {
        F16 q;
        load_tail(q, query + c, d - c);
        for (int r = 0; r < Rows; ++r) {
            F16 x;
            load_tail(x, rows + r * stride + c, d - c);
            sum[r] += q * x;
        }
    }
    for (int r = 0; r < Rows; ++r) out[r] = sum_of(sum[r]);
}

void dots(const float* query, const float* rows, std::int64_t n, std::int64_t d,
          std::int64_t stride, float* out) {
    std::int64_t i = 0;
    for (; i + 4 <= n; i += 4) dots_of<4>(query, rows + i * stride, d, stride, out + i);
    for (; i < n; ++i) dots_of<1>(query, rows + i * stride, d, stride, out + i);
}

void squared_norms(const float* rows, std::int64_t n, std::int64_t d, std::int64_t stride,
                   double* out) {
    for (std::int64_t i = 0; i < n; ++i) {
        const float* row = rows + i * stride;
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

void widen(const std::uint16_t* half, std::int64_t count, float* out) {
    // Exponent and mantissa moved up, then multiplied by 2^112: the difference of the exponents'
    // biases. Exact for subnormal halves too.
    std::int64_t i = 0;
    const float scale = 0x1p112F;
    for (; i < count; ++i) {
        const auto bits = static_cast<std::uint32_t>(half[i] & 0x7FFFU) << 13;
        float value;
        __builtin_memcpy(&value, &bits, sizeof value);
        value *= scale;
        value = bits >= 0x0F800000U ? kInfinity : value;
        out[i] = (half[i] & 0x8000U) != 0 ? -value : value;
    }
}

// ---------------------------------------------------------------- int8

// Two lanes' products of 16-bit integers added into one of 32 bits, over 32 values.
#if defined(__AVX512F__)
struct Wide {
    __m512i v;
};
BOOKRAG_INLINE void add_products(Wide& sum, const std::int16_t* query, const std::int8_t* row) {
    const __m512i b =
        _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row)));
    sum.v = _mm512_add_epi32(sum.v, _mm512_madd_epi16(_mm512_loadu_si512(query), b));
}
// Sums of four at once. Halves by shuffles: gcc 12 warns of its own extraction intrinsics.
BOOKRAG_INLINE void sums_of(const Wide (&s)[4], std::int32_t* out) {
    typedef std::int32_t I8 __attribute__((vector_size(32)));
    typedef std::int32_t I4 __attribute__((vector_size(16)));
    __m128i quarter[4];
    for (int r = 0; r < 4; ++r) {
        const auto v = reinterpret_cast<I16>(s[r].v);
        const I8 half = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                        __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
        const I4 sum = __builtin_shufflevector(half, half, 0, 1, 2, 3) +
                       __builtin_shufflevector(half, half, 4, 5, 6, 7);
        quarter[r] = reinterpret_cast<__m128i>(sum);
    }
    const __m128i all = _mm_hadd_epi32(_mm_hadd_epi32(quarter[0], quarter[1]),
                                       _mm_hadd_epi32(quarter[2], quarter[3]));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), all);
}
#elif defined(__AVX2__)
struct Wide {
    __m256i v;
};
BOOKRAG_INLINE void add_products(Wide& sum, const std::int16_t* query, const std::int8_t* row) {
    for (int part = 0; part < 2; ++part) {
        const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(query + 16 * part));
        const __m256i b = _mm256_cvtepi8_epi16(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 16 * part)));
        sum.v = _mm256_add_epi32(sum.v, _mm256_madd_epi16(a, b));
    }
}
BOOKRAG_INLINE void sums_of(const Wide (&s)[4], std::int32_t* out) {
    __m128i quarter[4];
    for (int r = 0; r < 4; ++r) {
        quarter[r] =
            _mm_add_epi32(_mm256_castsi256_si128(s[r].v), _mm256_extracti128_si256(s[r].v, 1));
    }
    const __m128i all = _mm_hadd_epi32(_mm_hadd_epi32(quarter[0], quarter[1]),
                                       _mm_hadd_epi32(quarter[2], quarter[3]));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), all);
}
#elif defined(__SSE4_1__)
struct Wide {
    __m128i v;
};
BOOKRAG_INLINE void add_products(Wide& sum, const std::int16_t* query, const std::int8_t* row) {
    for (int part = 0; part < 4; ++part) {
        const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(query + 8 * part));
        const __m128i b =
            _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + 8 * part)));
        sum.v = _mm_add_epi32(sum.v, _mm_madd_epi16(a, b));
    }
}
BOOKRAG_INLINE void sums_of(const Wide (&s)[4], std::int32_t* out) {
    const __m128i all =
        _mm_hadd_epi32(_mm_hadd_epi32(s[0].v, s[1].v), _mm_hadd_epi32(s[2].v, s[3].v));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), all);
}
#else
struct Wide {
    std::int32_t v;
};
BOOKRAG_INLINE void add_products(Wide& sum, const std::int16_t* query, const std::int8_t* row) {
    for (int i = 0; i < 32; ++i) sum.v += query[i] * row[i];
}
BOOKRAG_INLINE void sums_of(const Wide (&s)[4], std::int32_t* out) {
    for (int r = 0; r < 4; ++r) out[r] = s[r].v;
}
#endif

// Sums to products with the scales, four at once.
BOOKRAG_INLINE void scale_sums(const std::int32_t* sums, float query_scale, const float* scales,
                               float* out) {
    typedef std::int32_t I4 __attribute__((vector_size(16)));
    typedef float F4 __attribute__((vector_size(16)));
    I4 whole;
    F4 scale;
    __builtin_memcpy(&whole, sums, sizeof whole);
    __builtin_memcpy(&scale, scales, sizeof scale);
    const F4 product = __builtin_convertvector(whole, F4) * query_scale * scale;
    __builtin_memcpy(out, &product, sizeof product);
}

void scan(const std::int16_t* query, const std::int8_t* rows, std::int64_t n, std::int64_t width,
          float query_scale, const float* scales, float* out) {
    std::int32_t sums[4];
    std::int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        Wide sum[4] = {};
        const std::int8_t* row = rows + i * width;
        for (std::int64_t c = 0; c < width; c += 32) {
            for (int r = 0; r < 4; ++r) add_products(sum[r], query + c, row + r * width + c);
        }
        sums_of(sum, sums);
        scale_sums(sums, query_scale, scales + i, out + i);
    }
    for (; i < n; ++i) {
        Wide sum[4] = {};
        for (std::int64_t c = 0; c < width; c += 32) {
            add_products(sum[0], query + c, rows + i * width + c);
        }
        sums_of(sum, sums);
        out[i] = static_cast<float>(sums[0]) * query_scale * scales[i];
    }
}

// Replaces the least of a heap of k values by a larger one.
BOOKRAG_INLINE void replace_least(float* heap, std::int64_t k, float value) {
    std::int64_t at = 0;
    while (2 * at + 1 < k) {
        std::int64_t child = 2 * at + 1;
        if (child + 1 < k && heap[child + 1] < heap[child]) ++child;
        if (heap[child] >= value) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = value;
}

float kth_lower_bound(const float* values, const float* errors, std::int64_t n, float base,
                      float factor, std::int64_t k, float* heap) {
    for (std::int64_t i = 0; i < k; ++i) heap[i] = -kInfinity;
    std::int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        F16 v, e;
        load(v, values + i);
        load(e, errors + i);
        const F16 lower = v - (base + factor * e);
        if (!any(lower > heap[0])) continue;
        for (int lane = 0; lane < 16; ++lane) {
            if (lower[lane] > heap[0]) replace_least(heap, k, lower[lane]);
        }
    }
    for (; i < n; ++i) {
        const float lower = values[i] - (base + factor * errors[i]);
        if (lower > heap[0]) replace_least(heap, k, lower);
    }
    return heap[0];
}

std::int64_t at_least(const float* values, const float* errors, std::int64_t n, float base,
                      float factor, float least, std::int32_t* out) {
    std::int64_t size = 0;
    std::int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        F16 v, e;
        load(v, values + i);
        load(e, errors + i);
        const F16 upper = v + (base + factor * e);
        if (!any(upper >= least)) continue;
        for (int lane = 0; lane < 16; ++lane) {
            if (upper[lane] >= least) out[size++] = static_cast<std::int32_t>(i + lane);
        }
    }
    for (; i < n; ++i) {
        const float upper = values[i] + (base + factor * errors[i]);
        if (upper >= least) out[size++] = static_cast<std::int32_t>(i);
    }
    return size;
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
    dots, squared_norms, widen, scan, kth_lower_bound, at_least, best_matches, all_finite};

BOOKRAG_KERNELS_END
