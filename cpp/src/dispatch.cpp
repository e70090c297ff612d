#include "bookrag/dispatch.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>

#include "check.hpp"
#include "kernels/select.hpp"

#if BOOKRAG_X86_KERNELS
#include <cpuid.h>
#endif

namespace bookrag {

namespace {

struct Available {
    std::array<Isa, 4> isas{};
    std::size_t count = 0;
};

#if BOOKRAG_X86_KERNELS
// Asked of the CPU: older compilers' __builtin_cpu_supports does not know the name.
bool converts_halves() noexcept {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

Available detect() noexcept {
    Available found;
#if BOOKRAG_X86_KERNELS
    __builtin_cpu_init();
    found.isas[found.count++] = Isa::sse42;  // the library's own baseline
    // The features of a level that a compiler may use and that are not implied by the others. The
    // names of whole levels are unknown to older compilers.
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                    converts_halves();
    if (v3) found.isas[found.count++] = Isa::avx2;
    if (v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
        found.isas[found.count++] = Isa::avx512;
    }
#else
    found.isas[found.count++] = Isa::baseline;
#endif
    return found;
}

const Available& available() noexcept {
    static const Available found = detect();
    return found;
}

Isa named(std::string_view name) {
    std::string known;
    for (const Isa isa : available_isas()) {
        if (name == isa_name(isa)) return isa;
        known += std::string(known.empty() ? "" : ", ") + isa_name(isa);
    }
    detail::invalid("BOOKRAG_ISA is '" + std::string(name) + "', but this machine offers " + known);
}

std::atomic<Isa>& active() {
    // If the variable is wrong this throws and is tried again by the next call.
    static std::atomic<Isa> chosen = [] {
        const char* wanted = std::getenv("BOOKRAG_ISA");  // NOLINT(concurrency-mt-unsafe)
        return wanted != nullptr && *wanted != '\0' ? named(wanted) : available_isas().back();
    }();
    return chosen;
}

}  // namespace

const char* isa_name(Isa isa) noexcept {
    switch (isa) {
        case Isa::baseline:
            return "baseline";
        case Isa::sse42:
            return "sse42";
        case Isa::avx2:
            return "avx2";
        case Isa::avx512:
            return "avx512";
    }
    return "unknown";
}

std::span<const Isa> available_isas() noexcept {
    return std::span(available().isas).first(available().count);
}

Isa isa() {
    return active().load(std::memory_order_relaxed);
}

void force_isa(Isa wanted) {
    active().store(named(isa_name(wanted)), std::memory_order_relaxed);
}

}  // namespace bookrag
