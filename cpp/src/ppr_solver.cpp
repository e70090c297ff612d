#include "ppr_solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/select.hpp"

namespace bookrag::kernels {
BOOKRAG_SELECT(PprKernels, ppr_kernels)
}

namespace bookrag::detail {

namespace {

constexpr double kHalfUlp = 0x1p-24;  // relative error of rounding to float32
// float32 sweeps do not bring the residual below about this, relative to the solution.
constexpr double kSingleFloor = 7e-8;
constexpr double kDoubleFloor = 1e-14;
// A refinement's correction is solved to this, relative to its right-hand side: near what float32
// can give, far enough that no sweep is wasted on its noise.
constexpr double kCorrection = 3e-6;

// The second eigenvalue of the walk, as it is first taken to be; see sweep_until.
constexpr double kGap = 0.93;
constexpr std::int64_t kSpreadEvery = 2;  // sweeps; every one hardly gains more
constexpr int kIdle = 8;                  // sweeps without progress: float32 has no more to give
constexpr std::int64_t kSettled = 6;      // sweeps after which their rate tells something

std::size_t idx(std::int64_t i) noexcept {
    return static_cast<std::size_t>(i);
}

// The best factor of over-relaxation for an iteration with the eigenvalues -mu .. mu (Young, 1954).
float young(double mu) noexcept {
    return static_cast<float>(2.0 / (1.0 + std::sqrt(1.0 - mu * mu)));
}

}  // namespace

// Error bounds. With r = b + a P y - y the next Jacobi iterate y + r has the residual a P r, so
// that |error|_1 <= a / (1 - a) |r|_1, P being column-stochastic. The exact y sums to
// total = |b|_1 / (1 - a); dividing by the iterate's own sum instead moves it by at most the
// difference of the two sums, which is known. Where P was rounded, by something of which column v
// moved by m_v in L1, the residual is off by at most a sum(m_v |y_v|), and y + r by 1 / (1 - a) of
// that.
double PprSolver::bound(const kernels::PprResidual& r) const noexcept {
    const double moved = damping_ / (1.0 - damping_) * r.moved;
    return amplify_ * r.norm + share_ * (std::abs(r.sum - total_) + moved);
}

void PprSolver::begin(const PprLayout& layout, const PprRestart& restart, double damping,
                      std::int64_t limit) {
    layout_ = &layout;
    restart_ = &restart;
    limit_ = std::max<std::int64_t>(limit, 1);
    damping_ = damping;
    isolated_ = 0.0;
    sweeps_ = 0;
    residuals_ = 0;
    const auto place = layout.position_of();
    b_.assign(idx(layout.positions()), 0.0F);
    double connected = 0.0;
    double rounding = 0.0;
    for (std::size_t i = 0; i < restart.rows.size(); ++i) {
        if (layout.isolated(restart.rows[i])) {
            isolated_ += restart.masses[i];
            continue;
        }
        const auto single = static_cast<float>(restart.masses[i]);
        b_[idx(place[idx(restart.rows[i])])] = single;
        connected += restart.masses[i];
        rounding += std::abs(double{single} - restart.masses[i]);
    }
    x_.assign(b_.begin(), b_.end());
    next_.resize(b_.size());
    // No kernel writes the positions between the hubs and the first group.
    for (std::int64_t at = layout.matrix().hubs; at % kernels::kLanes != 0; ++at) {
        next_[idx(at)] = 0.0F;
    }
    // Entities without relations send everything back to the seeds. Their share of the restart
    // mass is known beforehand, so the chain with restarts is y scaled, and no pass handles them.
    share_ = (1.0 - damping) / (1.0 - damping * std::min(isolated_, 1.0));
    amplify_ = share_ * damping / (1.0 - damping);
    total_ = connected / (1.0 - damping);
    rounding_ = share_ * rounding / (1.0 - damping);
    changes_ = total_;
    omega_ = young(kGap * damping);
}

void PprSolver::reach(double tol, bool exact) {
    const auto m = layout_->matrix();
    single_ = sweep_and_certify(m, tol) && !exact;
    if (!single_) refine(m, tol);
}

// Sweeps until the residual, guessed from how fast the changes fall, is what is wanted. total: what
// the solution sums to; size: of its values, by which rounding is told from progress.
//
// The slowest part of the error has the shape of the degrees, and its size is known, since the sum
// is: taking it out is a two-level method whose coarse space is one exact eigenvector (Koury,
// McAllister, Stewart, SIAM J. Algebr. Discrete Methods 5(2), 1984). What is left mostly converges
// like a walk of a lower damping, for which less over-relaxation is best. Where it does not,
// because parts of the graph hardly touch, the rate shows it, and the factor follows (Hageman and
// Young, Applied Iterative Methods, 1981, chapter 9). At 5e4 entities, damping 0.85, 1e-6: 14
// sweeps instead of 20.
void PprSolver::sweep_until(const kernels::PprMatrix& m, double total, double size, double wanted,
                            double ratio) {
    const auto& kernel = kernels::select_ppr_kernels();
    // What is less is rounding, which would be spread for ever.
    const double least = 1e-6 * size;
    const double floor = 1e-4 * size;
    double lowest = changes_;
    int idle = 0;
    double last = 1.0;
    for (std::int64_t sweep = 1; damping_ > 0.0 && sweeps_ < 3 * limit_; ++sweep) {
        // Without over-relaxation a sweep does what a power iteration's pass does, or more, in L1
        // too; no graph is known that comes this far.
        if (sweeps_ == limit_) omega_ = 1.0F;
        const double changes =
            double{kernel.sweep(m, b_.data(), x_.data(), static_cast<float>(damping_), omega_)};
        ++sweeps_;
        const double shrink = std::min(changes / changes_, 1.0);
        changes_ = std::max(changes, std::numeric_limits<double>::min());
        if (ratio * changes * shrink <= wanted) break;
        // Rounding may keep values swinging for ever where parts of the graph are bipartite.
        idle = changes < 0.999 * lowest ? 0 : idle + 1;
        lowest = std::min(lowest, changes);
        if (idle >= kIdle && changes < floor) break;
        if (sweeps_ >= limit_) continue;
        if (sweep >= kSettled) {
            // Young's relation between the rate of a sweep and the eigenvalue that it is due to.
            const double rate = std::sqrt(shrink * last);
            const double omega = double{omega_};
            const double mu = (rate + omega - 1.0) / (omega * std::sqrt(rate));
            omega_ = std::max(omega_, young(std::min(damping_, mu)));
        }
        last = shrink;
        if (sweep % kSpreadEvery == 0) kernel.spread(m, total, least, x_.data());
    }
}

// float32 sweeps, then one pass in float64 that says how good they are and improves them once
// more. Returns whether the bound holds; if not, next_ is the best that float32 could do.
bool PprSolver::sweep_and_certify(const kernels::PprMatrix& m, double tol) {
    const auto& kernel = kernels::select_ppr_kernels();
    // Rounding P moves a column by about a third of half a unit in the last place.
    const double within = tol - rounding_ - 0.4 * kHalfUlp * amplify_ * total_;
    const bool possible = within > 0.3 * tol && amplify_ * kSingleFloor * total_ < tol;
    // The residual that is enough; where float32 cannot give it, one worth refining from.
    const double wanted =
        possible ? 0.8 * within / std::max(amplify_, 1e-300) : 20.0 * kSingleFloor * total_;
    double ratio = 1.0;  // residual to the sweep's changes, learnt when a pass was one too early
    for (int tries = 0; tries < 3; ++tries) {
        sweep_until(m, total_, total_, wanted, ratio);
        const auto r = kernel.certify(m, b_.data(), x_.data(), next_.data(), damping_);
        ++residuals_;
        error_ = bound(r) + rounding_;
        scale_ = 1.0 / (r.sum + isolated_);
        if (error_ <= tol) return true;
        if (!possible) return false;
        ratio *= std::max(2.0, amplify_ * r.norm / within);
    }
    return false;
}

// Iterative refinement (Wilkinson): the residual in float64 from the exact weights, the correction
// in float32. Each round takes five to six digits off the error.
void PprSolver::refine(const kernels::PprMatrix& m, double tol) {
    const auto& kernel = kernels::select_ppr_kernels();
    const std::size_t positions = b_.size();
    const auto place = layout_->position_of();
    const auto inverse = layout_->inverse_degree();
    b64_.assign(positions, 0.0);
    for (std::size_t i = 0; i < restart_->rows.size(); ++i) {
        const std::int32_t row = restart_->rows[i];
        if (!layout_->isolated(row)) b64_[idx(place[idx(row)])] = restart_->masses[i];
    }
    x64_.assign(next_.begin(), next_.end());
    y64_.resize(positions);
    double last = std::numeric_limits<double>::infinity();
    while (true) {
        for (std::size_t i = 0; i < positions; ++i) y64_[i] = x64_[i] * inverse[i];
        const auto r =
            kernel.residual(m, b64_.data(), x64_.data(), y64_.data(), b_.data(), damping_);
        ++residuals_;
        error_ = bound(r);
        scale_ = 1.0 / (r.sum + isolated_);
        // Float64 has its floor as well; there it ends.
        const bool floor = r.norm > 0.5 * last && r.norm < kDoubleFloor * total_;
        if (error_ <= tol || floor || sweeps_ >= 3 * limit_) {
            for (std::size_t i = 0; i < positions; ++i) x64_[i] += double{b_[i]};
            return;
        }
        last = r.norm;
        const double size = r.norm / (1.0 - damping_);
        std::copy(b_.begin(), b_.end(), x_.begin());
        const double wanted = std::max(kCorrection * size, 0.5 * tol / amplify_);
        changes_ = size;
        sweep_until(m, (total_ - r.sum) / damping_, size, std::min(wanted, 0.1 * r.norm), 1.0);
        for (std::size_t i = 0; i < positions; ++i) x64_[i] += double{x_[i]};
    }
}

}  // namespace bookrag::detail
