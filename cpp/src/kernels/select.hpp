// How one kernel source becomes several sets of functions, and how the library picks one.
//
// A kernel source is compiled once an instruction set (CMake: bookrag_add_kernels), each time with
// the macro BOOKRAG_ISA naming it (sse42, avx2, avx512; baseline off x86) and everything it defines
// in namespace bookrag::kernels::BOOKRAG_ISA. What it offers is one constant table of function
// pointers:
//
//   kernels/foo.hpp    struct FooKernels { void (*bar)(const float*, std::size_t); };
//   kernels/foo.cpp    #include "kernels/foo.hpp"
//                      BOOKRAG_KERNELS_BEGIN
//                      namespace { void bar(const float* x, std::size_t n) {...} }
//                      extern const FooKernels foo_kernels{bar};
//                      BOOKRAG_KERNELS_END
//   foo.cpp            BOOKRAG_SELECT(FooKernels, foo_kernels)   // in namespace bookrag::kernels
//                      kernels::select_foo_kernels().bar(x, n);
//
// RULES for kernel sources:
// - Nothing with external linkage but the table. A template or inline function of the standard
//   library, instantiated here with AVX-512 and kept by the linker for everyone, would crash older
//   CPUs: so no <algorithm>, <vector>, <cmath> functions or spans (in a debug build even
//   std::size() is such a function); raw pointers, own functions in an anonymous namespace,
//   compiler built-ins.
// - The same operations in the same order whatever the set: fixed numbers of lanes (16 floats, 8
//   doubles), no contraction to fused multiply-add (the flags see to it), so that results are equal
//   bit for bit.
#pragma once

#if defined(__x86_64__) && !defined(BOOKRAG_ONE_ISA)
#define BOOKRAG_X86_KERNELS 1
#else
#define BOOKRAG_X86_KERNELS 0
#endif

#define BOOKRAG_KERNELS_BEGIN    \
    namespace bookrag::kernels { \
    namespace BOOKRAG_ISA {
#define BOOKRAG_KERNELS_END \
    }                       \
    }

#ifndef BOOKRAG_ISA  // the library's side; kernel sources see none of it
#include "bookrag/dispatch.hpp"

#if BOOKRAG_X86_KERNELS
#define BOOKRAG_SELECT(Table, name)                        \
    namespace sse42 {                                      \
    extern const Table name;                               \
    }                                                      \
    namespace avx2 {                                       \
    extern const Table name;                               \
    }                                                      \
    namespace avx512 {                                     \
    extern const Table name;                               \
    }                                                      \
    [[maybe_unused]] static const Table& select_##name() { \
        switch (isa()) {                                   \
            case Isa::avx512:                              \
                return avx512::name;                       \
            case Isa::avx2:                                \
                return avx2::name;                         \
            default:                                       \
                return sse42::name;                        \
        }                                                  \
    }
#else
#define BOOKRAG_SELECT(Table, name)                        \
    namespace baseline {                                   \
    extern const Table name;                               \
    }                                                      \
    [[maybe_unused]] static const Table& select_##name() { \
        (void)isa();                                       \
        return baseline::name;                             \
    }
#endif
#endif
