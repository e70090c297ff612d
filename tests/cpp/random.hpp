// Seeded random inputs, the same on every platform (std distributions are not).
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace testing {

class Random {
  public:
    explicit Random(std::uint32_t seed) : engine_(seed) {}

    // 0 .. limit - 1
    std::int32_t below(std::int32_t limit) {
        return static_cast<std::int32_t>(engine_() % static_cast<std::uint32_t>(limit));
    }
    float unit() { return static_cast<float>(engine_() >> 8) / 16777216.0F; }

    std::vector<std::int32_t> ids(std::size_t count, std::int32_t limit) {
        std::vector<std::int32_t> out(count);
        for (auto& id : out) id = below(limit);
        return out;
    }
    std::vector<float> units(std::size_t count, float low = 0.0F) {
        std::vector<float> out(count);
        for (auto& value : out) value = low + unit();
        return out;
    }

  private:
    std::mt19937 engine_;  // its sequence is fixed by the standard
};

}  // namespace testing
