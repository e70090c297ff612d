#include <algorithm>
#include <string>

#include "bookrag/dispatch.hpp"
#include "testing.hpp"

using bookrag::Isa;

TEST(dispatch, offers_what_it_can_force) {
    const auto offered = bookrag::available_isas();
    CHECK(!offered.empty());
    CHECK(std::ranges::is_sorted(offered));
    const Isa before = bookrag::isa();
    for (const Isa isa : offered) {
        bookrag::force_isa(isa);
        CHECK(bookrag::isa() == isa);
        CHECK(std::string(bookrag::isa_name(isa)) != "unknown");
    }
    bookrag::force_isa(before);
}

TEST(dispatch, refuses_what_is_not_there) {
    const auto offered = bookrag::available_isas();
    for (const Isa isa : {Isa::baseline, Isa::sse42, Isa::avx2, Isa::avx512}) {
        if (std::ranges::find(offered, isa) == offered.end()) {
            CHECK_THROWS(invalid_argument, bookrag::force_isa(isa));
        }
    }
}
