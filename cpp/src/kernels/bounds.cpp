#include "kernels/bounds.hpp"

#include "kernels/bytes.hpp"

BOOKRAG_KERNELS_BEGIN

namespace {

constexpr float kInfinity = __builtin_inff();
constexpr int kBlocks = 4 / kParts;  // at once: as many sums as stay in registers

BOOKRAG_INLINE bool any(const I16& mask) {
#if defined(__AVX512F__)
    return _mm512_movepi32_mask(reinterpret_cast<__m512i>(mask)) != 0;
#else
    std::int32_t some = 0;
    for (int i = 0; i < 16; ++i) some |= mask[i];
    return some != 0;
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

BOOKRAG_INLINE std::int32_t nibble_product(const std::int8_t* query, const std::uint8_t* row,
                                           std::int64_t width) {
    Part sums[kParts] = {};
    for (std::int64_t c = 0; c < width; c += 128) {
        for (int p = 0; p < kParts; ++p) {
            constexpr auto kStep = static_cast<std::int64_t>(sizeof(Part));
            Part x, low, high;
            load_part(x, row + c / 2 + p * kStep);
            load_part(low, query + c + p * kStep);
            load_part(high, query + c + 64 + p * kStep);
            sums[p] = add_pairs(sums[p], add16(pair_products(low_nibbles(x), low),
                                               pair_products(high_nibbles(x), high)));
        }
    }
    std::int32_t lanes[16];
    for (int p = 0; p < kParts; ++p) store_part(lanes + 16 / kParts * p, sums[p]);
    std::int32_t sum = 0;
    for (const auto lane : lanes) sum += lane;
    return sum;
}

void nibble_products(const std::int8_t* query, const std::uint8_t* rows, std::int64_t width,
                     const std::int32_t* ids, std::int64_t count, std::int32_t* out) {
    constexpr std::int64_t kAhead = 8;  // rows, which lie anywhere
    for (std::int64_t i = 0; i < count; ++i) {
        if (i + kAhead < count) {
            const std::uint8_t* next = rows + ids[i + kAhead] * (width / 2);
            for (std::int64_t c = 0; c < width / 2; c += 64) __builtin_prefetch(next + c);
        }
        out[i] = nibble_product(query, rows + ids[i] * (width / 2), width);
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

float kth_largest(const float* values, std::int64_t n, std::int64_t k, float* heap) {
    for (std::int64_t i = 0; i < k; ++i) heap[i] = -kInfinity;
    std::int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        F16 v;
        load(v, values + i);
        if (!any(v > heap[0])) continue;
        for (int lane = 0; lane < 16; ++lane) {
            if (values[i + lane] > heap[0]) replace_least(heap, k, values[i + lane]);
        }
    }
    for (; i < n; ++i) {
        if (values[i] > heap[0]) replace_least(heap, k, values[i]);
    }
    return heap[0];
}

std::int64_t at_least(const float* values, std::int64_t n, float least, std::int32_t* out) {
    std::int64_t size = 0;
    std::int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        F16 v;
        load(v, values + i);
        if (!any(v >= least)) continue;
        for (int lane = 0; lane < 16; ++lane) {
            out[size] = static_cast<std::int32_t>(i + lane);
            size += values[i + lane] >= least ? 1 : 0;
        }
    }
    for (; i < n; ++i) {
        if (values[i] >= least) out[size++] = static_cast<std::int32_t>(i);
    }
    return size;
}

}  // namespace

extern const BoundKernels bound_kernels{of_bytes, of_nibbles, nibble_products, kth_largest,
                                        at_least};

BOOKRAG_KERNELS_END
