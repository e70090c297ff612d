// Counts calls of operator new in the whole test program, so that promises of none can be held to,
// and lets one fail.
#pragma once

namespace testing {

// -1 under a sanitizer, which brings an operator new of its own.
long allocations() noexcept;

// The call of operator new after `calls` more fails, once; not under a sanitizer.
void fail_allocation_after(long calls) noexcept;

}  // namespace testing
