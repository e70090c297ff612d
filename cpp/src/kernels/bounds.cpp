#include "kernels/bounds.hpp"

#include "kernels/bytes.hpp"

BOOKRAG_KERNELS_BEGIN

namespace {

typedef std::int32_t I4 __attribute__((vector_size(16)));
typedef std::int32_t I4u __attribute__((vector_size(16), aligned(4)));

constexpr int kBlocks = 4 / kParts;  // at once: as many sums as stay in registers

// One bit a lane.
BOOKRAG_INLINE std::uint32_t bits_of(const I16& mask) {
#if defined(__AVX512F__)
    return _mm512_movepi32_mask(reinterpret_cast<__m512i>(mask));
#elif defined(__SSE2__)
    std::uint32_t bits = 0;
    for (int part = 0; part < 4; ++part) {
        __m128 four;
        __builtin_memcpy(&four, reinterpret_cast<const char*>(&mask) + 16 * part, sizeof four);
        bits |= static_cast<std::uint32_t>(_mm_movemask_ps(four)) << (4 * part);
    }
    return bits;
#else
    std::uint32_t bits = 0;
    for (int i = 0; i < 16; ++i) bits |= (mask[i] != 0 ? 1U : 0U) << i;
    return bits;
#endif
}

BOOKRAG_INLINE void fill_query(Part& to, const std::int8_t* query) {
    std::int32_t four;
    __builtin_memcpy(&four, query, sizeof four);
    fill_part(to, four);
}

BOOKRAG_INLINE void write_bounds(const Part (&sums)[kBlocks * kParts], const BoundTerms& terms,
                                 const float* scales, const float* errors, float* out) {
    std::int32_t whole[16 * kBlocks];
    for (int p = 0; p < kBlocks * kParts; ++p) store_part(whole + 16 / kParts * p, sums[p]);
    for (int b = 0; b < kBlocks; ++b) {
        const I16 sum = *reinterpret_cast<const I16u*>(whole + 16 * b);
        F16 scale, error;
        load(scale, scales + 16 * b);
        load(error, errors + 16 * b);
        const F16 product = __builtin_convertvector(sum + sum - terms.shift, F16) * terms.scale;
        store(out + 16 * b, product * scale + (terms.base + terms.factor * error));
    }
}

void of_bytes(const std::int8_t* query, const std::uint8_t* blocks, std::int64_t n,
              std::int64_t width, const BoundTerms& terms, const float* scales, const float* errors,
              float* out) {
    for (std::int64_t i = 0; i < n; i += 16 * kBlocks) {
        Part sums[kBlocks * kParts] = {};
        const std::uint8_t* rows = blocks + i * width;
        for (std::int64_t c = 0; c < width; c += 4) {
            Part q;
            fill_query(q, query + c);
            for (int p = 0; p < kBlocks * kParts; ++p) {
                Part x;
                load_part(x,
                          rows + (p / kParts) * 16 * width + 16 * c + (p % kParts) * sizeof(Part));
                sums[p] = add_pairs(sums[p], pair_products(x, q));
            }
        }
        write_bounds(sums, terms, scales + i, errors + i, out + i);
    }
}

void of_nibbles(const std::int8_t* query, const std::uint8_t* blocks, std::int64_t n,
                std::int64_t width, const BoundTerms& terms, const float* scales,
                const float* errors, float* out) {
    for (std::int64_t i = 0; i < n; i += 16 * kBlocks) {
        Part sums[kBlocks * kParts] = {};
        const std::uint8_t* rows = blocks + i * width / 2;
        for (std::int64_t first = 0; first < width; first += 32) {
            // 8 pairs of products of at most 2 * 15 * 127 still fit 16 bits.
            Part words[kBlocks * kParts] = {};
            for (std::int64_t c = first; c < first + 32; c += 8) {
                Part low, high;
                fill_query(low, query + c);
                fill_query(high, query + c + 4);
                for (int p = 0; p < kBlocks * kParts; ++p) {
                    Part x;
                    load_part(
                        x, rows + (p / kParts) * 8 * width + 8 * c + (p % kParts) * sizeof(Part));
                    words[p] = add16(words[p], add16(pair_products(low_nibbles(x), low),
                                                     pair_products(high_nibbles(x), high)));
                }
            }
            for (int p = 0; p < kBlocks * kParts; ++p) sums[p] = add_pairs(sums[p], words[p]);
        }
        write_bounds(sums, terms, scales + i, errors + i, out + i);
    }
}

// Sums of four products at once, so that their additions overlap.
BOOKRAG_INLINE void nibble_products(const std::int8_t* query, const std::uint8_t* const (&rows)[4],
                                    std::int64_t width, I4& out) {
    constexpr auto kStep = static_cast<std::int64_t>(sizeof(Part));
    Part sums[4] = {};
    for (std::int64_t c = 0; c < width; c += 128) {
        for (int p = 0; p < kParts; ++p) {
            Part low, high;
            load_part(low, query + c + p * kStep);
            load_part(high, query + c + 64 + p * kStep);
            for (int r = 0; r < 4; ++r) {
                Part x;
                load_part(x, rows[r] + c / 2 + p * kStep);
                sums[r] = add_pairs(sums[r], add16(pair_products(low_nibbles(x), low),
                                                   pair_products(high_nibbles(x), high)));
            }
        }
    }
    constexpr int kLanes = 16 / kParts;
    std::int32_t lanes[4 * kLanes];
    for (int r = 0; r < 4; ++r) store_part(lanes + kLanes * r, sums[r]);
    I4 row[4];
    for (int r = 0; r < 4; ++r) {
        row[r] = *reinterpret_cast<const I4u*>(lanes + kLanes * r);
        for (int l = 4; l < kLanes; l += 4) {
            row[r] += *reinterpret_cast<const I4u*>(lanes + kLanes * r + l);
        }
    }
    // Turned and added: lane r becomes the sum of row r.
    const I4 even01 = __builtin_shufflevector(row[0], row[1], 0, 4, 2, 6) +
                      __builtin_shufflevector(row[0], row[1], 1, 5, 3, 7);
    const I4 even23 = __builtin_shufflevector(row[2], row[3], 0, 4, 2, 6) +
                      __builtin_shufflevector(row[2], row[3], 1, 5, 3, 7);
    out = __builtin_shufflevector(even01, even23, 0, 1, 4, 5) +
          __builtin_shufflevector(even01, even23, 2, 3, 6, 7);
}

std::int64_t refine(const std::int8_t* query, const std::uint8_t* rows, std::int64_t width,
                    const RefineTerms& terms, const float* scales, const float* gains,
                    const float* bounds, float least, std::int32_t* ids, std::int64_t count) {
    constexpr std::int64_t kAhead = 16;  // rows, which lie anywhere
    const std::int64_t bytes = width / 2;
    std::int64_t size = 0;
    for (std::int64_t i = 0; i < count; i += 4) {
        std::int32_t id[4];
        const std::uint8_t* four[4];
        for (int r = 0; r < 4; ++r) {
            id[r] = ids[i + r < count ? i + r : count - 1];
            four[r] = rows + id[r] * bytes;
            if (i + r + kAhead < count) {
                const std::uint8_t* next = rows + ids[i + r + kAhead] * bytes;
                for (std::int64_t c = 0; c < bytes; c += 64) __builtin_prefetch(next + c);
            }
        }
        I4 sums;
        nibble_products(query, four, width, sums);
        for (int r = 0; r < 4 && i + r < count; ++r) {
            const float more = static_cast<float>(sums[r] - terms.shift) * terms.scale;
            const float bound = bounds[id[r]] + more * scales[id[r]] - terms.factor * gains[id[r]];
            ids[size] = id[r];
            size += bound >= least ? 1 : 0;
        }
    }
    return size;
}

std::int64_t count_of(const float* values, std::int64_t n, float least) {
    I16 counts{};  // -1 each
    for (std::int64_t i = 0; i < n; i += 16) {
        F16 v;
        load(v, values + i);
        counts += v >= least;
    }
    std::int64_t sum = 0;
    for (int lane = 0; lane < 16; ++lane) sum -= counts[lane];
    return sum;
}

BOOKRAG_INLINE void larger(F16& a, const F16& b) {
    a = a > b ? a : b;
}

float reached_by(const float* values, std::int64_t n, std::int64_t k, float* tops) {
    F16 all = F16{} + kLeastBound;
    for (std::int64_t i = 0; i < n; i += kRowsAtOnce) {
        F16 top, v;
        load(top, values + i);
        for (std::int64_t b = 16; b < kRowsAtOnce; b += 16) {
            load(v, values + i + b);
            larger(top, v);
        }
        store(tops + i / 4, top);
        larger(all, top);
    }
    float high = kLeastBound;
    for (int lane = 0; lane < 16; ++lane) high = all[lane] > high ? all[lane] : high;
    // Tops that k rows reach, are reached by k rows, if so many are no padding.
    const bool enough = k <= (n - kRowsAtOnce) / 4;
    const float* const counted = enough ? tops : values;
    const std::int64_t size = enough ? n / 4 : n;
    float low = kLeastBound;
    for (int step = 0; step < 24; ++step) {
        const float middle = (low + high) / 2;
        const std::int64_t count = count_of(counted, size, middle);
        if (count < k) {
            high = middle;
            continue;
        }
        low = middle;
        if (count <= k + k / 2) break;
    }
    return low;
}

std::int64_t within(const float* values, const float* tops, std::int64_t n, float least,
                    float below, std::int32_t* out) {
    std::int64_t size = 0;
    for (std::int64_t first = 0; first < n; first += kRowsAtOnce) {
        F16 top;
        load(top, tops + first / 4);
        if (bits_of(top >= least) == 0) continue;
        for (std::int64_t i = first; i < first + kRowsAtOnce; i += 16) {
            F16 v;
            load(v, values + i);
            auto bits = bits_of((v >= least) & (v < below));
#if defined(__AVX512F__)
            I16 rows = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
            rows += static_cast<std::int32_t>(i);
            _mm512_storeu_si512(out + size,
                                _mm512_maskz_compress_epi32(static_cast<__mmask16>(bits),
                                                            reinterpret_cast<__m512i>(rows)));
            size += __builtin_popcount(bits);
#else
            for (; bits != 0; bits &= bits - 1) {
                out[size++] = static_cast<std::int32_t>(i + __builtin_ctz(bits));
            }
#endif
        }
    }
    return size;
}

}  // namespace

extern const BoundKernels bound_kernels{of_bytes, of_nibbles, refine, reached_by, within};

BOOKRAG_KERNELS_END
