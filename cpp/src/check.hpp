// Argument checks shared by the core's sources. Not installed.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include "bookrag/error.hpp"

namespace bookrag::detail {

[[noreturn]] inline void fail(ErrorCode code, const std::string& message) {
    throw Error(code, message);
}

[[noreturn]] inline void invalid(const std::string& message) {
    fail(ErrorCode::invalid_argument, message);
}

// A number as a person writes it: 0.5, 1e+300, nan.
inline std::string text(double value) {
    std::array<char, 32> buffer{};
    std::snprintf(buffer.data(), buffer.size(), "%.9g", value);
    return buffer.data();
}

// "name[3]"
inline std::string at(const char* name, std::size_t position) {
    return std::string(name) + "[" + std::to_string(position) + "]";
}

// "there are 5 entities (0 to 4)" for the end of a message about an unknown id.
inline std::string known(std::int64_t count, const char* things) {
    if (count == 0) return std::string("there are no ") + things;
    return "there are " + std::to_string(count) + " " + things + " (0 to " +
           std::to_string(count - 1) + ")";
}

inline void check_id(std::int32_t id, std::int64_t count, const char* name, const char* things) {
    if (id < 0 || id >= count) {
        fail(ErrorCode::out_of_range,
             std::string(name) + " is " + std::to_string(id) + ", but " + known(count, things));
    }
}

inline void check_ids(std::span<const std::int32_t> ids, std::int64_t count, const char* name,
                      const char* things) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] < 0 || ids[i] >= count) {
            fail(ErrorCode::out_of_range,
                 at(name, i) + " is " + std::to_string(ids[i]) + ", but " + known(count, things));
        }
    }
}

inline void check_count(std::int64_t count, std::int64_t limit, const char* name) {
    if (count < 0) {
        invalid(std::string(name) + " is " + std::to_string(count) + ", but must not be negative");
    }
    if (count > limit) {
        fail(ErrorCode::too_large, std::string(name) + " is " + std::to_string(count) +
                                       ", beyond the limit of " + std::to_string(limit));
    }
}

inline void check_same_length(std::size_t a, const char* name_a, std::size_t b,
                              const char* name_b) {
    if (a != b) {
        invalid(std::string(name_a) + " has " + std::to_string(a) + " values and " + name_b +
                " has " + std::to_string(b) + ", but they must be equally long");
    }
}

}  // namespace bookrag::detail
