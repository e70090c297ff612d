// Solves  y = b + damping P y  for one restart distribution. Not installed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "aligned.hpp"
#include "kernels/ppr.hpp"
#include "ppr_layout.hpp"

namespace bookrag::detail {

// A restart distribution: distinct rows with masses that sum to 1.
struct PprRestart {
    std::vector<std::int32_t> rows;
    std::vector<double> masses;
};

// Memory and state of a solution, reused: one a thread.
class PprSolver {
  public:
    // Takes up a problem. limit: of sweeps. The layout and the restart must stay as they are.
    void begin(const PprLayout& layout, const PprRestart& restart, double damping,
               std::int64_t limit);
    // Goes on until the L1 error of the normalised result is within tol for certain. exact: in
    // float64, so that values64() holds it; otherwise it is in either, see single(). May be called
    // again with a lower tol.
    //
    // The result at a position p is value(p) * scale(); negative values (an over-relaxed sweep may
    // leave some, within the error) stand for 0. Rows without relations have their restart mass *
    // scale().
    void reach(double tol, bool exact = false);

    [[nodiscard]] bool single() const noexcept { return single_; }
    [[nodiscard]] std::span<const float> values() const noexcept { return next_; }
    [[nodiscard]] std::span<const double> values64() const noexcept { return x64_; }
    [[nodiscard]] double scale() const noexcept { return scale_; }
    // The bound on the L1 error that was reached, and the sweeps and passes in all
    // that it took.
    [[nodiscard]] double error() const noexcept { return error_; }
    [[nodiscard]] std::int64_t sweeps() const noexcept { return sweeps_; }
    [[nodiscard]] std::int64_t passes() const noexcept { return sweeps_ + residuals_; }

  private:
    [[nodiscard]] double bound(const kernels::PprResidual& r) const noexcept;
    [[nodiscard]] bool sweep_and_certify(const kernels::PprMatrix& m, double tol);
    void refine(const kernels::PprMatrix& m, double tol);
    void sweep_until(const kernels::PprMatrix& m, double total, double size, double wanted,
                     double ratio);

    const PprLayout* layout_ = nullptr;
    const PprRestart* restart_ = nullptr;
    std::int64_t limit_ = 1;
    double damping_ = 0.0;
    double isolated_ = 0.0;  // mass of the restart on rows without relations
    double total_ = 0.0;     // sum of the exact y
    double share_ = 1.0;     // takes y to the walk's distribution
    double amplify_ = 0.0;   // share_ * damping / (1 - damping)
    double rounding_ = 0.0;  // error of rounding b to float32; float32 sweeps only
    float omega_ = 1.0F;

    LineVector<float> b_;
    LineVector<float> x_;
    LineVector<float> next_;
    LineVector<double> b64_;
    LineVector<double> x64_;
    LineVector<double> y64_;
    bool single_ = true;
    double changes_ = 0.0;  // of the last sweep
    double scale_ = 1.0;
    double error_ = 0.0;
    std::int64_t sweeps_ = 0;
    std::int64_t residuals_ = 0;
};

}  // namespace bookrag::detail
