// Counts calls of operator new in the whole test program, so that promises of none can be held to.
#pragma once

namespace testing {

// -1 under a sanitizer, which brings an operator new of its own.
long allocations() noexcept;

}  // namespace testing
