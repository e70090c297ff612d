#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "aligned.hpp"
#include "bookrag/similarity.hpp"
#include "cosines.hpp"
#include "directions.hpp"
#include "quantise.hpp"

namespace bookrag {

namespace {

using namespace detail;
using kernels::BoundTerms;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kDirections = 32;

std::int64_t rounded_up(std::int64_t n, std::int64_t to) {
    return (n + to - 1) / to * to;
}

// A query as bytes times a scale.
struct QueryBytes {
    float scale = 0.0F;
    double error = 0.0;    // |query - scale * bytes|, rounded up
    std::int32_t sum = 0;  // of the bytes
};

QueryBytes query_bytes(std::span<const float> values, std::vector<std::int8_t>& bytes) {
    QueryBytes out;
    out.error = quantise(values, 127.0F, bytes.data(), out.scale);
    out.sum = std::accumulate(bytes.begin(), bytes.begin() + std::ssize(values), 0);
    return out;
}

struct Candidate {
    float bound;
    std::int32_t row;
};

// Memory of a search, kept by the thread for its next one: allocated anew it would cost page faults
// for a third of the time.
struct Scratch {
    LineVector<float> bounds;
    std::vector<float> heap;
    std::vector<float> cosines;
    std::vector<std::int32_t> found;
    std::vector<std::int32_t> sums;
    std::vector<std::int8_t> bytes;
    std::vector<Candidate> candidates;

    // The same for everyone on this thread: no two searches overlap on one.
    static Scratch& of(std::int64_t rows, std::int64_t width, std::int64_t k) {
        thread_local Scratch scratch;
        const auto at_least = [](auto& values, std::int64_t size) {
            if (std::ssize(values) < size) values.resize(idx(size));
        };
        at_least(scratch.bounds, rows);
        at_least(scratch.found, rows);
        at_least(scratch.sums, rows);
        at_least(scratch.heap, k);
        at_least(scratch.cosines, std::max(k, std::int64_t{kDirections}));
        at_least(scratch.bytes, std::max(width, std::int64_t{kDirections}));
        return scratch;
    }
};

}  // namespace

// Unit rows as bytes b * scale, |b| <= 127, and 16 high + low = b + 128 in two planes of nibbles.
// High alone stands for b = 16 high - 120.
struct VectorIndex::Nibbles {
    std::int64_t width;             // dimensions, rounded up
    LineVector<std::uint8_t> high;  // in blocks (kernels/bounds.hpp)
    LineVector<std::uint8_t> low;   // rows one after the other
    LineVector<float> scales;       // of rows rounded up to whole blocks, as the errors
    LineVector<float> high_errors;  // |unit row - what the high nibbles give|, rounded up
    LineVector<float> errors;       // |unit row - what both give|

    Nibbles(std::int64_t n, std::int64_t d) : width(rounded_up(d, kernels::kWidthOfNibbles)) {
        const std::int64_t padded = rounded_up(n, kernels::kRowsAtOnce);
        high.assign(idx(padded * width / 2), 0);
        low.assign(idx(n * width / 2), 0);
        scales.assign(idx(padded), 0.0F);
        high_errors.assign(idx(padded), -kInfinity);  // no bound of a row that is none
        errors.assign(idx(padded), -kInfinity);
    }

    void set(std::int64_t row, std::span<const float> unit, std::vector<std::int8_t>& bytes) {
        float& scale = scales[idx(row)];
        const double error = quantise(unit, 127.0F, bytes.data(), scale);
        std::uint8_t* const block = &high[idx(row / 16 * 8 * width + row % 16 * 4)];
        std::uint8_t* const own = &low[idx(row * width / 2)];
        double squared = 0.0;
        for (std::int64_t c = 0; c < std::ssize(unit); ++c) {
            const int both = bytes[idx(c)] + 128;
            const double off = double{unit[idx(c)]} - (both / 16 * 16 - 120) * double{scale};
            squared += off * off;
            block[c / 8 * 64 + c % 4] |=
                static_cast<std::uint8_t>(c % 8 < 4 ? both / 16 : both / 16 * 16);
            own[c / 128 * 64 + c % 64] |=
                static_cast<std::uint8_t>(c % 128 < 64 ? both % 16 : both % 16 * 16);
        }
        // The unit row's values were rounded: relatively 2^-24 each.
        high_errors[idx(row)] = static_cast<float>(std::sqrt(squared) * (1.0 + 1e-6) + 0x1p-22);
        errors[idx(row)] = static_cast<float>(error * (1.0 + 1e-6) + 0x1p-22);
    }

    [[nodiscard]] std::int64_t memory_bytes() const noexcept {
        return std::ssize(high) + std::ssize(low) + 12 * std::ssize(scales);
    }
};

// Unit rows projected onto kDirections, as bytes b * scale, |b| <= 63; b + 64 in blocks.
struct VectorIndex::Projection {
    std::vector<float> basis;  // kDirections rows of d
    LineVector<std::uint8_t> blocks;
    LineVector<float> scales;
    LineVector<float> residuals;    // norm of what of the unit row lies outside, rounded up
    float error = 0.0F;             // the largest |projection - scale * bytes|, rounded up
    double typical_residual = 0.0;  // root mean square

    [[nodiscard]] std::int64_t memory_bytes() const noexcept {
        return std::ssize(blocks) + 8 * std::ssize(scales) + 4 * std::ssize(basis);
    }
};

VectorIndex::VectorIndex(std::span<const float> rows, std::int64_t n, std::int64_t d)
    : n_(n), d_(d) {
    check_shape(rows.size(), n, d, "rows");
    const auto& kernel = similarity_kernels();
    rows_.assign(rows.begin(), rows.end());
    inverse_norms_.resize(idx(n));
    Nibbles nibbles(n, d);
    std::vector<float> unit_row(idx(d));
    std::vector<std::int8_t> bytes(idx(d));
    for (std::int64_t i = 0; i < n; ++i) {
        const float* row = &rows_[idx(i * d)];
        float square = 0.0F;
        kernel.dots(row, row, 1, d, &square, nullptr);
        const auto exactly = [&](std::int64_t) {
            double squared = 0.0;
            kernel.squared_norms(row, 1, d, &squared);
            return squared;
        };
        float& inverse = inverse_norms_[idx(i)];
        inverse_norms({&square, 1}, i, exactly, &inverse);
        for (std::int64_t c = 0; c < d; ++c) unit_row[idx(c)] = row[c] * inverse;
        nibbles.set(i, unit_row, bytes);
    }
    nibbles_ = std::make_shared<const Nibbles>(std::move(nibbles));
    project();
}

void VectorIndex::project() {
    constexpr std::int64_t kEnoughRows = 2048;  // fewer are scanned as they are before it pays
    constexpr std::int64_t kEnoughDimensions = 128;
    constexpr double kMostOutside = 0.6;  // mean squared residual; more leaves nothing to discard
    if (n_ < kEnoughRows || d_ < kEnoughDimensions || d_ > kMostProjected) return;
    Projection made;
    made.basis = main_directions(rows_, inverse_norms_, n_, d_, kDirections);
    if (made.basis.empty()) return;
    const std::int64_t padded = rounded_up(n_, kernels::kRowsAtOnce);
    made.blocks.assign(idx(padded * kDirections), 0);
    made.scales.assign(idx(padded), 0.0F);
    made.residuals.assign(idx(padded), -kInfinity);  // no bound of a row that is none
    std::vector<float> projection(idx(kDirections));
    std::vector<std::int8_t> bytes(idx(kDirections));
    double outside = 0.0;
    double error = 0.0;
    for (std::int64_t i = 0; i < n_; ++i) {
        similarity_kernels().dots(&rows_[idx(i * d_)], made.basis.data(), kDirections, d_,
                                  projection.data(), nullptr);
        for (auto& v : projection) v *= inverse_norms_[idx(i)];
        error = std::max(error, quantise(projection, 63.0F, bytes.data(), made.scales[idx(i)]));
        std::uint8_t* const block = &made.blocks[idx(i / 16 * 16 * kDirections + i % 16 * 4)];
        for (std::int64_t c = 0; c < kDirections; ++c) {
            block[c / 4 * 64 + c % 4] = static_cast<std::uint8_t>(bytes[idx(c)] + 64);
        }
        const double rest = inverse_norms_[idx(i)] == 0.0F ? 0.0 : residual(projection);
        made.residuals[idx(i)] = static_cast<float>(rest * (1.0 + 1e-6));
        outside += rest * rest;
    }
    if (outside > kMostOutside * static_cast<double>(n_)) return;
    made.error = static_cast<float>(error * (1.0 + 1e-6));
    made.typical_residual = std::sqrt(outside / static_cast<double>(n_));
    projection_ = std::make_shared<const Projection>(std::move(made));
}

std::int64_t VectorIndex::memory_bytes() const noexcept {
    return n_ * (d_ + 1) * 4 + nibbles_->memory_bytes() +
           (projection_ ? projection_->memory_bytes() : 0);
}

// One search. Rows pass from bound to bound; each bound is at least the cosine as `dots` gives it,
// so a row below `least`, which k rows are known to reach, is none of the k best.
//
// With t a the query as bytes and s b the row: q.r - (t a).(s b) = (q - t a).r + (t a).(r - s b),
// so that with |r| = 1 the error is at most |q - t a| + |t a| |r - s b|, and |t a| <= |q| + |q - t
// a|.
class VectorIndex::Search {
  public:
    Search(const VectorIndex& index, std::span<const float> query, std::int64_t k)
        : index_(index),
          unit_(unit(query, 0, similarity_kernels())),
          k_(k),
          padded_(rounded_up(index.n_, kernels::kRowsAtOnce)),
          // Of two float32 sums: at most d / 16 + 4 additions each, and a few products; twice over.
          rounding_((static_cast<double>(index.d_) / 16.0 + 32.0) * 0x1p-23),
          scratch_(Scratch::of(padded_, index.nibbles_->width, k)) {
        if (!by_projection()) by_nibbles();
    }

    // The best rows as ranked() words, descending.
    std::vector<std::uint64_t> best() {
        constexpr std::size_t kChunk = 8;
        auto& candidates = scratch_.candidates;
        std::sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
            return a.bound != b.bound ? a.bound > b.bound : a.row < b.row;
        });
        std::vector<std::uint64_t> heap;
        heap.reserve(idx(k_) + kChunk);
        std::int32_t rows[kChunk];
        float cosines[kChunk];
        for (std::size_t i = 0; i < candidates.size();) {
            const bool full = heap.size() == idx(k_);
            if (full && candidates[i].bound < cosine_of(heap.front())) break;
            const std::size_t count = std::min(kChunk, candidates.size() - i);
            for (std::size_t j = 0; j < count; ++j) rows[j] = candidates[i + j].row;
            compute({rows, count}, cosines);
            for (std::size_t j = 0; j < count; ++j) {
                const auto word = ranked(cosines[j], rows[j]);
                if (heap.size() == idx(k_)) {
                    if (word < heap.front()) continue;
                    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
                    heap.pop_back();
                }
                heap.push_back(word);
                std::push_heap(heap.begin(), heap.end(), std::greater<>());
            }
            i += count;
            computed_ += static_cast<std::int64_t>(count);
        }
        std::sort_heap(heap.begin(), heap.end(), std::greater<>());
        return heap;
    }

    [[nodiscard]] std::int64_t computed() const noexcept { return computed_; }

  private:
    void compute(std::span<const std::int32_t> rows, float* cosines) const {
        similarity_kernels().dots_at(unit_.data(), index_.rows_.data(), rows.data(),
                                     std::ssize(rows), index_.d_, cosines);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            cosines[i] *= index_.inverse_norms_[idx(rows[i])];
        }
    }

    // Rows whose bound reaches what k rows are known to reach: those that look best.
    std::int64_t within_bounds() {
        const auto& kernel = bound_kernels();
        const float* const bounds = scratch_.bounds.data();
        std::int32_t* const found = scratch_.found.data();
        const float looks = kernel.kth_largest(bounds, padded_, k_, scratch_.heap.data());
        kernel.at_least(bounds, padded_, looks, found);
        compute({found, idx(k_)}, scratch_.cosines.data());
        const auto* const first = scratch_.cosines.data();
        least_ = std::max(least_, *std::min_element(first, first + k_));
        return kernel.at_least(bounds, padded_, least_, found);
    }

    // False if the projection says too little.
    bool by_projection() {
        constexpr double kTooMuch = 0.3;  // added to the rows' bounds discards few of them
        const std::int64_t most = index_.n_ / 16;
        if (!index_.projection_ || k_ > most) return false;
        const Projection& rows = *index_.projection_;
        const std::span projection(scratch_.cosines.data(), idx(kDirections));
        similarity_kernels().dots(unit_.data(), rows.basis.data(), kDirections, index_.d_,
                                  projection.data(), nullptr);
        const double rest = residual(projection);
        if (rest * rows.typical_residual > kTooMuch) return false;
        const QueryBytes query = query_bytes(projection, scratch_.bytes);
        const double base =
            1.01 * (query.error + double{rows.error}) + kNotQuiteOrthonormal + rounding_;
        const BoundTerms terms{128 * query.sum, query.scale / 2, static_cast<float>(base),
                               static_cast<float>(rest * (1.0 + 1e-6))};
        bound_kernels().of_bytes(scratch_.bytes.data(), rows.blocks.data(), padded_, kDirections,
                                 terms, rows.scales.data(), rows.residuals.data(),
                                 scratch_.bounds.data());
        const std::int64_t count = within_bounds();
        if (count > most) return false;
        scratch_.candidates.clear();
        for (std::int64_t i = 0; i < count; ++i) {
            const auto row = scratch_.found[idx(i)];
            scratch_.candidates.push_back({scratch_.bounds[idx(row)], row});
        }
        return true;
    }

    void by_nibbles() {
        const Nibbles& rows = *index_.nibbles_;
        const QueryBytes query = query_bytes(unit_, scratch_.bytes);
        std::fill(scratch_.bytes.begin() + index_.d_, scratch_.bytes.begin() + rows.width,
                  std::int8_t{0});
        const BoundTerms terms{15 * query.sum, 8.0F * query.scale,
                               static_cast<float>(query.error * (1.0 + 1e-6) + rounding_),
                               static_cast<float>(1.0 + 1e-5 + query.error)};
        bound_kernels().of_nibbles(scratch_.bytes.data(), rows.high.data(), padded_, rows.width,
                                   terms, rows.scales.data(), rows.high_errors.data(),
                                   scratch_.bounds.data());
        const std::int64_t count = within_bounds();
        bound_kernels().nibble_products(scratch_.bytes.data(), rows.low.data(), rows.width,
                                        scratch_.found.data(), count, scratch_.sums.data());
        scratch_.candidates.clear();
        for (std::int64_t i = 0; i < count; ++i) {
            const auto row = scratch_.found[idx(i)];
            // high stood for the middle of its 16 values: low = 8.
            const auto more = static_cast<float>(scratch_.sums[idx(i)] - 8 * query.sum);
            const float bound = scratch_.bounds[idx(row)] +
                                more * query.scale * rows.scales[idx(row)] +
                                terms.factor * (rows.errors[idx(row)] - rows.high_errors[idx(row)]);
            if (bound >= least_) scratch_.candidates.push_back({bound, row});
        }
    }

    const VectorIndex& index_;
    std::vector<float> unit_;
    std::int64_t k_;
    std::int64_t padded_;
    double rounding_;
    Scratch& scratch_;
    float least_ = -kInfinity;
    std::int64_t computed_ = 0;
};

std::int64_t VectorIndex::checked(std::span<const float> query, std::int64_t k) const {
    check_k(k);
    if (std::ssize(query) != d_) {
        invalid("query has " + std::to_string(query.size()) +
                " values, but the index has rows of " + std::to_string(d_));
    }
    return std::min(k, n_);
}

Neighbours VectorIndex::search(std::span<const float> query, std::int64_t k) const {
    Neighbours out;
    out.k = checked(query, k);
    if (out.k == 0) return out;
    const auto words = Search(*this, query, out.k).best();
    out.ids.resize(words.size());
    out.cosines.resize(words.size());
    std::transform(words.begin(), words.end(), out.ids.begin(), row_of);
    std::transform(words.begin(), words.end(), out.cosines.begin(), cosine_of);
    return out;
}

std::int64_t VectorIndex::candidates(std::span<const float> query, std::int64_t k) const {
    const std::int64_t most = checked(query, k);
    if (most == 0) return 0;
    Search search(*this, query, most);
    (void)search.best();
    return search.computed();
}

}  // namespace bookrag
