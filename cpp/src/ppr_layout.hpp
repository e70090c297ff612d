// Lays an adjacency out for the kernels of kernels/ppr.hpp. Not installed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "aligned.hpp"
#include "kernels/ppr.hpp"

namespace bookrag::detail {

// Owns what a PprMatrix points at. Building again reuses the memory: once it has seen the largest
// graph, it allocates nothing.
class PprLayout {
  public:
    // Rows and columns 0 .. rows - 1; row r has the neighbours targets[begin[r] .. end[r]),
    // any order, repeats allowed (they add up). Symmetric; weights finite and > 0. O(rows + slots).
    template <typename Offset>
    void build(std::span<const Offset> begin, std::span<const Offset> end,
               std::span<const std::int32_t> targets, std::span<const float> weights);

    [[nodiscard]] kernels::PprMatrix matrix() const noexcept;
    [[nodiscard]] std::int64_t positions() const noexcept { return positions_; }
    // Position of each row. Rows without slots have that of a row that does not exist: its values
    // stay 0.
    [[nodiscard]] std::span<const std::int32_t> position_of() const noexcept { return position_; }
    // Row at each position, -1: none.
    [[nodiscard]] std::span<const std::int32_t> row_at() const noexcept {
        return std::span(row_).first(static_cast<std::size_t>(positions_));
    }
    [[nodiscard]] bool isolated(std::int32_t row) const noexcept {
        return position_[static_cast<std::size_t>(row)] == nowhere_;
    }
    // 1 / weighted degree by position, 0 where there is no row.
    [[nodiscard]] std::span<const double> inverse_degree() const noexcept { return inverse_; }

  private:
    // Rows of one degree within a window, dealt out to `groups` groups: the first `rest` get
    // `whole` + 1 of them.
    struct Class {
        std::int32_t rows;
        std::int32_t first;  // position
        std::int32_t groups;
        std::int32_t whole;
        std::int32_t rest;
        std::int32_t group;
        std::int32_t round;

        std::int32_t next() noexcept {
            const std::int32_t before = group < rest ? group : rest;
            const std::int32_t at = first + group * whole + before + round;
            if (++group == groups) {
                group = 0;
                ++round;
            }
            return at;
        }
    };
    void number_rows(std::int64_t rows);
    void plan_groups();

    std::int64_t positions_ = 0;
    std::int32_t nowhere_ = 0;
    std::int64_t hubs_ = 0;
    std::int64_t slots_ = 0;
    std::vector<std::int32_t> position_;  // by row
    std::vector<std::int32_t> degree_;    // by row
    std::vector<std::int32_t> row_;       // by position, -1: none
    std::vector<std::int32_t> hub_rows_;
    std::vector<std::int32_t> lonely_;  // rows without slots
    LineVector<double> inverse_;
    std::vector<std::int64_t> hub_slots_;
    std::vector<kernels::PprRun> runs_;
    LineVector<std::int32_t> index_;
    LineVector<float> p_;
    LineVector<float> weight_;
    LineVector<float> coupling_;
    LineVector<float> rounding_;
    LineVector<float> strength_;
};

}  // namespace bookrag::detail
