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
using kernels::RefineTerms;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kDirections = 48;

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

// Memory of a search, kept by the thread for its next one: allocated anew it would cost page faults
// for a third of the time.
struct Scratch {
    LineVector<float> bounds;
    LineVector<float> tops;
    std::vector<float> projection;
    std::vector<std::int32_t> found;
    std::vector<std::int8_t> bytes;

    // The same for everyone on this thread: no two searches overlap on one.
    static Scratch& of(std::int64_t rows, std::int64_t width) {
        thread_local Scratch scratch;
        const auto at_least = [](auto& values, std::int64_t size) {
            if (std::ssize(values) < size) values.resize(idx(size));
        };
        at_least(scratch.bounds, rows);
        at_least(scratch.found, rows + 16);
        at_least(scratch.tops, rows / 4);
        at_least(scratch.projection, kDirections);
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
    LineVector<float> gains;        // by how much less it is with both

    Nibbles(std::int64_t n, std::int64_t d) : width(rounded_up(d, kernels::kWidthOfNibbles)) {
        const std::int64_t padded = rounded_up(n, kernels::kRowsAtOnce);
        high.assign(idx(padded * width / 2), 0);
        low.assign(idx(n * width / 2), 0);
        scales.assign(idx(padded), 0.0F);
        high_errors.assign(idx(padded), -kInfinity);  // no bound of a row that is none
        gains.assign(idx(padded), 0.0F);
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
        gains[idx(row)] = static_cast<float>(
            std::max(0.0, std::sqrt(squared) - error * (1.0 + 1e-6)) * (1.0 - 1e-6));
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

// One search. Rows pass from bound to bound; each bound is at least the cosine as `compute` gives
// it, so a row below the k-th best cosine of those computed is none of the k best.
//
// With t a the query as bytes and s b the row: q.r - (t a).(s b) = (q - t a).r + (t a).(r - s b),
// so that with |r| = 1 the error is at most |q - t a| + |t a| |r - s b|, and |t a| <= |q| + |q - t
// a|.
class VectorIndex::Search {
  public:
    Search(const VectorIndex& index, std::span<const float> query, std::int64_t k)
        : index_(index),
          unit_(unit(query, 0, similarity_kernels())),
          k_(idx(k)),
          first_(std::min(2 * k, index.n_)),
          padded_(rounded_up(index.n_, kernels::kRowsAtOnce)),
          // Of two float32 sums: at most d / 16 + 4 additions each, and a few products; twice over.
          rounding_((static_cast<double>(index.d_) / 16.0 + 32.0) * 0x1p-23),
          scratch_(Scratch::of(padded_, index.nibbles_->width)) {
        best_.reserve(k_);
        if (!by_projection()) by_nibbles();
        std::sort_heap(best_.begin(), best_.end(), std::greater<>());
    }

    // The best rows as ranked() words, descending.
    [[nodiscard]] std::span<const std::uint64_t> best() const noexcept { return best_; }
    // Rows computed in full; some twice, if the projection was of no use.
    [[nodiscard]] std::int64_t computed() const noexcept { return computed_; }

  private:
    // Of the rows those that, by the bounds, may still be among the best.
    void compute(std::span<const std::int32_t> rows) {
        constexpr std::size_t kChunk = 32;
        std::int32_t some[kChunk];
        float cosines[kChunk];
        const float* const bounds = scratch_.bounds.data();
        for (auto row = rows.begin(); row != rows.end();) {
            const float least = best_.size() == k_ ? this->least() : -kInfinity;
            std::size_t count = 0;
            for (; row != rows.end() && count < kChunk; ++row) {
                some[count] = *row;
                count += bounds[*row] >= least ? 1 : 0;
            }
            similarity_kernels().dots_at(unit_.data(), index_.rows_.data(), some,
                                         static_cast<std::int64_t>(count), index_.d_, cosines);
            for (std::size_t i = 0; i < count; ++i) {
                offer(ranked(cosines[i] * index_.inverse_norms_[idx(some[i])], some[i]));
            }
            computed_ += static_cast<std::int64_t>(count);
        }
    }

    void offer(std::uint64_t word) {
        if (best_.size() == k_) {
            if (word < best_.front()) return;
            std::pop_heap(best_.begin(), best_.end(), std::greater<>());
            best_.pop_back();
        }
        best_.push_back(word);
        std::push_heap(best_.begin(), best_.end(), std::greater<>());
    }

    // The cosine that k rows are known to reach.
    [[nodiscard]] float least() const noexcept { return cosine_of(best_.front()); }

    // Computes the rows that look best. Others that may be among the k best are left in
    // scratch_.found; their number is returned.
    std::int64_t narrow() {
        const auto& kernel = bound_kernels();
        const float* const bounds = scratch_.bounds.data();
        float* const tops = scratch_.tops.data();
        std::int32_t* const found = scratch_.found.data();
        best_.clear();
        const float looks = kernel.reached_by(bounds, padded_, first_, tops);
        const auto count = kernel.within(bounds, tops, padded_, looks, kInfinity, found);
        const auto taken = std::min(count, 2 * first_);  // all, unless many look alike
        compute({found, idx(taken)});
        if (taken == count) return kernel.within(bounds, tops, padded_, least(), looks, found);
        const auto last = found[taken - 1];
        const auto reach = kernel.within(bounds, tops, padded_, least(), kInfinity, found);
        return std::remove_if(found, found + reach,
                              [&](auto row) { return row <= last && bounds[row] >= looks; }) -
               found;
    }

    // False if the projection says too little.
    bool by_projection() {
        constexpr double kTooMuch = 0.3;  // added to the rows' bounds discards few of them
        const std::int64_t most = index_.n_ / 16;
        if (!index_.projection_ || first_ > most) return false;
        const Projection& rows = *index_.projection_;
        const std::span<float> projection = scratch_.projection;
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
        const std::int64_t count = narrow();
        if (count > most) return false;
        compute({scratch_.found.data(), idx(count)});
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
        const std::int64_t count = narrow();
        // The high nibble stood for the middle of its 16 values, the low one being 8.
        const RefineTerms more{8 * query.sum, query.scale, terms.factor};
        const auto kept = bound_kernels().refine(
            scratch_.bytes.data(), rows.low.data(), rows.width, more, rows.scales.data(),
            rows.gains.data(), scratch_.bounds.data(), least(), scratch_.found.data(), count);
        compute({scratch_.found.data(), idx(kept)});
    }

    const VectorIndex& index_;
    std::vector<float> unit_;
    std::size_t k_;
    std::int64_t first_;  // rows computed before it is known which others may matter
    std::int64_t padded_;
    double rounding_;
    Scratch& scratch_;
    std::vector<std::uint64_t> best_;  // a heap, the least in front
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
    const Search search(*this, query, out.k);
    const auto words = search.best();
    out.ids.resize(words.size());
    out.cosines.resize(words.size());
    std::transform(words.begin(), words.end(), out.ids.begin(), row_of);
    std::transform(words.begin(), words.end(), out.cosines.begin(), cosine_of);
    return out;
}

std::int64_t VectorIndex::candidates(std::span<const float> query, std::int64_t k) const {
    const std::int64_t most = checked(query, k);
    return most == 0 ? 0 : std::min(n_, Search(*this, query, most).computed());
}

}  // namespace bookrag
