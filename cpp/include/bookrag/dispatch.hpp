// Which instruction set the compiled kernels use. Chosen once, from what the CPU has; the results
// do not depend on the choice (the tests compare them bit for bit).
#pragma once

#include <span>
#include <string_view>

namespace bookrag {

// Ascending: a CPU that has one has all before it.
enum class Isa {
    baseline,  // whatever the compiler targets: the only one on other architectures (NEON on arm64)
    sse42,     // x86-64-v2
    avx2,      // x86-64-v3
    avx512,    // x86-64-v4
};

// "baseline", "sse42", "avx2", "avx512".
[[nodiscard]] const char* isa_name(Isa isa) noexcept;

// Those this library was built for and this CPU has; ascending, never empty.
[[nodiscard]] std::span<const Isa> available_isas() noexcept;

// The one in use: the best available, unless the environment variable BOOKRAG_ISA names a lower
// one. The variable is read once. Throws Error (invalid_argument), on every call, if it names none
// that is available. O(1), thread safe.
[[nodiscard]] Isa isa();

// Uses another one from now on; for tests and measurements. Throws Error (invalid_argument) if it
// is not available. Safe while other threads compute: a computation keeps what it began with, or
// changes between two kernels, which no result shows.
void force_isa(Isa isa);

}  // namespace bookrag
