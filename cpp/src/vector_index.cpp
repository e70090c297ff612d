#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "bookrag/similarity.hpp"
#include "cosines.hpp"

namespace bookrag {

namespace {

using namespace detail;

constexpr std::int64_t kDirections = 64;

// Rounded to integers of at most `most`, times a scale; how far off, in norm, is returned. Rounds
// by adding 0.5: exact rounding is not needed, since what is off is measured.
template <typename Integer>
double quantise(std::span<const float> values, double most, Integer* out, float& scale) {
    float largest = 0.0F;
    for (const float v : values) largest = std::max(largest, std::abs(v));
    scale = static_cast<float>(double{largest} / most);
    if (!(scale > 0.0F)) {
        scale = 0.0F;
        std::fill_n(out, values.size(), Integer{0});
        return std::sqrt(static_cast<double>(values.size())) * double{largest};
    }
    const double inverse = 1.0 / double{scale};
    double error = 0.0;
    for (std::size_t c = 0; c < values.size(); ++c) {
        const double value = values[c];
        const double scaled = std::clamp(value * inverse, -most, most);
        const auto integer = static_cast<Integer>(scaled + (scaled < 0.0 ? -0.5 : 0.5));
        out[c] = integer;
        const double off = value - static_cast<double>(integer) * double{scale};
        error += off * off;
    }
    return std::sqrt(error) * (1.0 + 1e-6);
}

// Memory of a search, kept by the thread for its next one: allocated anew it would cost page faults
// for a third of the time.
struct Scratch {
    std::vector<float> about;
    std::vector<float> heap;
    std::vector<std::int32_t> found;
    std::vector<float> projection = std::vector<float>(idx(kDirections));
    std::vector<std::int16_t> integers = std::vector<std::int16_t>(idx(kDirections));

    // The same for everyone on this thread: no two searches overlap on one.
    static Scratch& of(std::int64_t n, std::int64_t k) {
        thread_local Scratch scratch;
        if (std::ssize(scratch.about) < n) {
            scratch.about.resize(idx(n));
            scratch.found.resize(idx(n));
        }
        if (std::ssize(scratch.heap) < k) scratch.heap.resize(idx(k));
        return scratch;
    }
};

// The largest integer in a query such that sums of `width` products with bytes stay in 32 bits.
double finest(std::int64_t width) {
    return std::min(32767.0, std::floor(double{std::numeric_limits<std::int32_t>::max()} /
                                        (127.0 * static_cast<double>(width))));
}

// Orthonormal directions (rows of d) that hold most of the rows' squares: two rounds of subspace
// iteration over a sample, from fixed pseudo-random directions. Empty if they came out dependent.
std::vector<float> main_directions(std::span<const float> rows, std::span<const float> inverse,
                                   std::int64_t n, std::int64_t d) {
    constexpr std::size_t kSample = 1024;
    const std::size_t width = idx(d);
    const std::size_t m = idx(kDirections);
    std::vector<float> basis(m * width);
    std::uint32_t state = 2512;
    for (auto& v : basis) {
        state = state * 1664525U + 1013904223U;
        v = static_cast<float>(state >> 8) / 16777216.0F - 0.5F;
    }
    std::vector<float> dots(m);
    std::vector<double> sums(m * width);
    for (int round = 0; round < 3; ++round) {
        std::fill(sums.begin(), sums.end(), 0.0);
        const std::size_t sampled = std::min(kSample, idx(n));
        for (std::size_t s = 0; s < sampled; ++s) {
            const std::size_t row = s * idx(n) / sampled;
            const float* values = &rows[row * width];
            similarity_kernels().dots(values, basis.data(), kDirections, d, d, dots.data());
            for (std::size_t j = 0; j < m; ++j) {
                const double share = double{dots[j]} * double{inverse[row]} * double{inverse[row]};
                double* sum = &sums[j * width];
                for (std::size_t c = 0; c < width; ++c) sum[c] += share * double{values[c]};
            }
        }
        for (std::size_t j = 0; j < m; ++j) {  // Gram-Schmidt, twice for the rounding of the first
            double* own = &sums[j * width];
            for (int pass = 0; pass < 2; ++pass) {
                for (std::size_t i = 0; i < j; ++i) {
                    const double* other = &sums[i * width];
                    const double dot = std::inner_product(own, own + width, other, 0.0);
                    for (std::size_t c = 0; c < width; ++c) own[c] -= dot * other[c];
                }
                const double norm = std::sqrt(std::inner_product(own, own + width, own, 0.0));
                if (!(norm > 0.0)) return {};
                for (std::size_t c = 0; c < width; ++c) own[c] /= norm;
            }
        }
        std::transform(sums.begin(), sums.end(), basis.begin(),
                       [](double v) { return static_cast<float>(v); });
    }
    for (std::size_t i = 0; i < m; ++i) {  // what the bounds below rely on
        for (std::size_t j = 0; j <= i; ++j) {
            const float* a = &basis[i * width];
            const float* b = &basis[j * width];
            const double dot = std::inner_product(a, a + width, b, 0.0, std::plus<>(),
                                                  [](float x, float y) { return double{x} * y; });
            if (!(std::abs(dot - (i == j ? 1.0 : 0.0)) <= 1e-6)) return {};
        }
    }
    return basis;
}

// With B the directions and B B' = I + E, |E| <= 64 * 1e-6, and projections in float32 (each off by
// less than 1e-5): q.r differs from (B q).(B r) + q'.r' by less than this, and the residuals'
// squared norms from 1 - |B q|^2 and 1 - |B r|^2 by less than half of it.
constexpr double kNotQuiteOrthonormal = 6e-4;

double residual(std::span<const float> projection) {
    const double inside =
        std::inner_product(projection.begin(), projection.end(), projection.begin(), 0.0,
                           std::plus<>(), [](float x, float y) { return double{x} * y; });
    return std::sqrt(std::max(0.0, 1.0 - inside + kNotQuiteOrthonormal));
}

}  // namespace

struct VectorIndex::Coarse {
    std::vector<float> basis;        // kDirections rows of d
    std::vector<std::int8_t> bytes;  // of each row kDirections, about its projection / scale
    std::vector<float> scales;
    std::vector<float> residuals;  // norm of what of the unit row lies outside, rounded up
    float error = 0.0F;            // the largest |projection - scale * bytes|, rounded up
};

VectorIndex::VectorIndex(std::span<const float> rows, std::int64_t n, std::int64_t d)
    : n_(n), d_(d), width_((d + 63) / 64 * 64) {
    check_shape(rows.size(), n, d, "rows");
    const auto& kernel = similarity_kernels();
    rows_.assign(rows.begin(), rows.end());
    inverse_norms_.resize(idx(n));
    scales_.resize(idx(n));
    errors_.resize(idx(n));
    bytes_.resize(idx(n * width_));
    std::vector<float> scaled(idx(d));
    for (std::int64_t i = 0; i < n; ++i) {
        const float* row = &rows_[idx(i * d)];
        double squared = 0.0;
        kernel.squared_norms(row, 1, d, d, &squared);
        const float inverse = inverse_norm(squared, i, "rows");
        inverse_norms_[idx(i)] = inverse;
        for (std::int64_t c = 0; c < d; ++c) scaled[idx(c)] = row[c] * inverse;
        const double error =
            quantise<std::int8_t>(scaled, 127.0, &bytes_[idx(i * width_)], scales_[idx(i)]);
        // The product with the inverse was rounded: relatively 2^-24 a value, and as much for the
        // inverse itself.
        errors_[idx(i)] = static_cast<float>(error * (1.0 + 1e-6) + 0x1p-22);
    }
    build_coarse();
}

void VectorIndex::build_coarse() {
    constexpr std::int64_t kEnoughRows = 2048;  // fewer are scanned as they are before it pays
    constexpr std::int64_t kEnoughDimensions = 128;
    constexpr std::int64_t kMostDimensions =
        2048;                             // float32 sums of more are off by more than 1e-5
    constexpr double kMostOutside = 0.6;  // mean squared residual; more leaves nothing to discard
    if (n_ < kEnoughRows || d_ < kEnoughDimensions || d_ > kMostDimensions) return;
    Coarse made;
    made.basis = main_directions(rows_, inverse_norms_, n_, d_);
    if (made.basis.empty()) return;
    made.bytes.resize(idx(n_ * kDirections));
    made.scales.resize(idx(n_));
    made.residuals.resize(idx(n_));
    std::vector<float> projection(idx(kDirections));
    double outside = 0.0;
    double error = 0.0;
    for (std::int64_t i = 0; i < n_; ++i) {
        similarity_kernels().dots(&rows_[idx(i * d_)], made.basis.data(), kDirections, d_, d_,
                                  projection.data());
        for (auto& v : projection) v *= inverse_norms_[idx(i)];
        error = std::max(error,
                         quantise<std::int8_t>(projection, 127.0, &made.bytes[idx(i * kDirections)],
                                               made.scales[idx(i)]));
        const double rest = inverse_norms_[idx(i)] == 0.0F ? 0.0 : residual(projection);
        made.residuals[idx(i)] = static_cast<float>(rest * (1.0 + 1e-6));
        outside += rest * rest;
    }
    if (outside > kMostOutside * static_cast<double>(n_)) return;
    made.error = static_cast<float>(error * (1.0 + 1e-6));
    coarse_ = std::make_shared<const Coarse>(std::move(made));
}

std::int64_t VectorIndex::memory_bytes() const noexcept {
    const std::int64_t coarse = coarse_ ? n_ * (kDirections + 8) + kDirections * d_ * 4 : 0;
    return n_ * (d_ * 4 + width_ + 12) + coarse;
}

struct VectorIndex::Prepared {
    std::int64_t k;
    std::vector<float> unit;             // the query divided by its norm
    std::vector<std::int16_t> integers;  // about unit / scale
    float scale;
    double rounding;  // of two float32 sums
    float base;       // of every row's error bound
    float factor;     // times the row's own error
};

VectorIndex::Prepared VectorIndex::prepare(std::span<const float> query, std::int64_t k) const {
    check_k(k);
    if (std::ssize(query) != d_) {
        invalid("query has " + std::to_string(query.size()) +
                " values, but the index has rows of " + std::to_string(d_));
    }
    Prepared out;
    out.k = std::min(k, n_);
    out.unit = unit(query, 0, similarity_kernels());
    out.integers.resize(idx(width_));
    // As fine as 32 bits allow: the query's own error is then far below the rows'.
    const double of_query =
        quantise(std::span<const float>(out.unit), finest(width_), out.integers.data(), out.scale);
    // q.r - (t a).(s b) = (q - t a).r + (t a).(r - s b), so that with |r| = 1 the error is at most
    // |q - t a| + |t a| |r - s b|, and |t a| <= |q| + |q - t a|. To that comes the rounding of the
    // float32 sums the bound is compared with: at most d / 16 + 4 additions each, and a few
    // products; twice over.
    out.rounding = (static_cast<double>(d_) / 16.0 + 32.0) * 0x1p-23;
    out.base = static_cast<float>(of_query * (1.0 + 1e-6) + out.rounding);
    out.factor = static_cast<float>(1.0 + 1e-5 + of_query);
    return out;
}

float VectorIndex::cosine(const Prepared& query, std::int32_t row) const {
    float dot = 0.0F;
    similarity_kernels().dots(query.unit.data(), &rows_[idx(row * d_)], 1, d_, d_, &dot);
    return dot * inverse_norms_[idx(row)];
}

// Rows whose projection lets them be among the best k; empty if that says too little.
std::vector<std::int32_t> VectorIndex::by_projection(const Prepared& query) const {
    const auto& kernel = similarity_kernels();
    const Coarse& coarse = *coarse_;
    Scratch& scratch = Scratch::of(n_, query.k);
    float* const about = scratch.about.data();
    std::int32_t* const found = scratch.found.data();
    const float* const residuals = coarse.residuals.data();
    const std::span<float> projection = scratch.projection;
    kernel.dots(query.unit.data(), coarse.basis.data(), kDirections, d_, d_, projection.data());
    float scale = 0.0F;
    const double off =
        quantise<std::int16_t>(projection, finest(kDirections), scratch.integers.data(), scale);
    kernel.scan(scratch.integers.data(), coarse.bytes.data(), n_, kDirections, scale,
                coarse.scales.data(), about);

    // Any k rows give a lower bound of the k-th best cosine; those that look best, a good one.
    const float looks =
        kernel.kth_lower_bound(about, residuals, n_, 0.0F, 0.0F, query.k, scratch.heap.data());
    kernel.at_least(about, residuals, n_, 0.0F, 0.0F, looks, found);
    float least = std::numeric_limits<float>::infinity();
    for (std::int64_t i = 0; i < query.k; ++i) least = std::min(least, cosine(query, found[i]));
    const double base = 1.01 * (off + double{coarse.error}) + kNotQuiteOrthonormal + query.rounding;
    const auto count =
        kernel.at_least(about, residuals, n_, static_cast<float>(base),
                        static_cast<float>(residual(projection) * (1.0 + 1e-6)), least, found);
    if (count > n_ / 8) return {};
    std::vector<std::int32_t> out;
    for (std::int64_t i = 0; i < count; ++i) {
        const auto row = found[i];
        float near = 0.0F;
        kernel.scan(query.integers.data(), &bytes_[idx(row * width_)], 1, width_, query.scale,
                    &scales_[idx(row)], &near);
        if (near + (query.base + query.factor * errors_[idx(row)]) >= least) out.push_back(row);
    }
    return out;
}

std::vector<std::int32_t> VectorIndex::candidates_of(const Prepared& query) const {
    if (coarse_ && query.k <= n_ / 16) {
        auto found = by_projection(query);
        if (std::ssize(found) >= query.k) return found;
    }
    const auto& kernel = similarity_kernels();
    Scratch& scratch = Scratch::of(n_, query.k);
    float* const about = scratch.about.data();
    std::int32_t* const found = scratch.found.data();
    kernel.scan(query.integers.data(), bytes_.data(), n_, width_, query.scale, scales_.data(),
                about);
    const float least = kernel.kth_lower_bound(about, errors_.data(), n_, query.base, query.factor,
                                               query.k, scratch.heap.data());
    const auto count =
        kernel.at_least(about, errors_.data(), n_, query.base, query.factor, least, found);
    return {found, found + count};
}

Neighbours VectorIndex::search(std::span<const float> query, std::int64_t k) const {
    const Prepared prepared = prepare(query, k);
    Neighbours out;
    out.k = prepared.k;
    if (out.k == 0) return out;
    std::vector<std::uint64_t> words;
    for (const auto row : candidates_of(prepared)) {
        words.push_back(ranked(cosine(prepared, row), row));
    }
    const auto end = words.begin() + out.k;
    std::partial_sort(words.begin(), end, words.end(), std::greater<>());
    out.ids.resize(idx(out.k));
    out.cosines.resize(idx(out.k));
    std::transform(words.begin(), end, out.ids.begin(), row_of);
    std::transform(words.begin(), end, out.cosines.begin(), cosine_of);
    return out;
}

std::int64_t VectorIndex::candidates(std::span<const float> query, std::int64_t k) const {
    const Prepared prepared = prepare(query, k);
    return prepared.k == 0 ? 0 : std::ssize(candidates_of(prepared));
}

}  // namespace bookrag
