// The one error type of the core. Everything the core refuses is an Error with a code; callers
// branch on the code, people read the message. std::bad_alloc passes through unchanged.
#pragma once

#include <stdexcept>
#include <string>

namespace bookrag {

enum class ErrorCode {
    invalid_argument,  // wrong shape, NaN, a cycle, a parameter outside its domain
    out_of_range,      // an id that names nothing
    too_large,         // beyond a limit of types.hpp; refused before memory is taken
};

class Error : public std::runtime_error {
  public:
    Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

    [[nodiscard]] ErrorCode code() const noexcept { return code_; }

  private:
    ErrorCode code_;
};

}  // namespace bookrag
