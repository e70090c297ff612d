#include "bookrag/page_text.hpp"

#include <cmath>
#include <string>
#include <unordered_map>

#include "bookrag/error.hpp"

namespace bookrag {
namespace {

// PDFium's public C types, as far as they are needed.
struct FsRect {
    float left, top, right, bottom;
};
struct FsMatrix {
    float a, b, c, d, e, f;
};

template <class Signature>
Signature* as(void* address) {
    return reinterpret_cast<Signature*>(address);
}

constexpr int kFormObject = 5;
constexpr int kTextObject = 1;
constexpr int kFormDepth = 4;

void collect(const PdfiumFunctions& f, void* object, const FsMatrix& outer, int depth,
             std::size_t limit, PageObjects& out) {
    const int kind = as<int(void*)>(f.object_type)(object);
    if (kind == kTextObject) return;
    if (out.kind.size() >= limit) {
        out.truncated = true;
        return;
    }
    if (kind == kFormObject) {
        if (depth >= kFormDepth) return;
        FsMatrix own{1, 0, 0, 1, 0, 0};
        as<int(void*, FsMatrix*)>(f.object_matrix)(object, &own);
        const FsMatrix m{own.a * outer.a + own.b * outer.c,
                         own.a * outer.b + own.b * outer.d,
                         own.c * outer.a + own.d * outer.c,
                         own.c * outer.b + own.d * outer.d,
                         own.e * outer.a + own.f * outer.c + outer.e,
                         own.e * outer.b + own.f * outer.d + outer.f};
        const int count = as<int(void*)>(f.form_count_objects)(object);
        for (int i = 0; i < count && !out.truncated; ++i) {
            void* child = as<void*(void*, unsigned long)>(f.form_object)(
                object, static_cast<unsigned long>(i));
            if (child != nullptr) collect(f, child, m, depth + 1, limit, out);
        }
        return;
    }
    float l = 0, b = 0, r = 0, t = 0;
    if (as<int(void*, float*, float*, float*, float*)>(f.object_bounds)(object, &l, &b, &r, &t) ==
        0)
        return;
    const float xs[4] = {outer.a * l + outer.c * b + outer.e, outer.a * r + outer.c * b + outer.e,
                         outer.a * l + outer.c * t + outer.e, outer.a * r + outer.c * t + outer.e};
    const float ys[4] = {outer.b * l + outer.d * b + outer.f, outer.b * r + outer.d * b + outer.f,
                         outer.b * l + outer.d * t + outer.f, outer.b * r + outer.d * t + outer.f};
    float x0 = xs[0], x1 = xs[0], y0 = ys[0], y1 = ys[0];
    for (int i = 1; i < 4; ++i) {
        x0 = std::fmin(x0, xs[i]);
        x1 = std::fmax(x1, xs[i]);
        y0 = std::fmin(y0, ys[i]);
        y1 = std::fmax(y1, ys[i]);
    }
    out.kind.push_back(kind);
    out.box.insert(out.box.end(), {x0, y0, x1, y1});
}

}  // namespace

PageText read_page_text(const PdfiumFunctions& f, void* text_page, std::size_t limit) {
    PageText out;
    const int count = as<int(void*)>(f.text_count_chars)(text_page);
    if (count <= 0) return out;
    const auto n = static_cast<std::size_t>(count);
    if (n > limit) {
        throw Error(ErrorCode::too_large, "a page of " + std::to_string(n) +
                                              " characters is beyond the limit of " +
                                              std::to_string(limit));
    }
    out.unicode.resize(n);
    out.loose.resize(4 * n);
    out.tight.resize(4 * n);
    out.origin.resize(2 * n);
    out.generated.resize(n);
    out.run.resize(n);

    const auto unicode = as<unsigned(void*, int)>(f.text_unicode);
    const auto char_box = as<int(void*, int, double*, double*, double*, double*)>(f.text_char_box);
    const auto loose_box = as<int(void*, int, FsRect*)>(f.text_loose_char_box);
    const auto char_origin = as<int(void*, int, double*, double*)>(f.text_char_origin);
    const auto is_generated = as<int(void*, int)>(f.text_is_generated);
    const auto text_object = as<void*(void*, int)>(f.text_object);

    std::unordered_map<std::string, std::int32_t> font_ids;
    std::unordered_map<void*, std::int32_t> run_ids;
    void* last = nullptr;
    std::int32_t run = -1;
    for (int i = 0; i < count; ++i) {
        const auto k = static_cast<std::size_t>(i);
        out.unicode[k] = unicode(text_page, i);
        out.generated[k] = is_generated(text_page, i) == 1 ? 1 : 0;
        void* object = text_object(text_page, i);
        if (object != nullptr && object != last) {
            last = object;
            const auto [found, fresh] =
                run_ids.try_emplace(object, static_cast<std::int32_t>(out.mode.size()));
            run = found->second;
            if (fresh) {
                FsMatrix m{1, 0, 0, 1, 0, 0};
                as<int(void*, int, FsMatrix*)>(f.text_matrix)(text_page, i, &m);
                out.matrix.insert(out.matrix.end(), {m.a, m.b, m.c, m.d});
                out.font_size.push_back(
                    static_cast<float>(as<double(void*, int)>(f.text_font_size)(text_page, i)));
                out.weight.push_back(as<int(void*, int)>(f.text_font_weight)(text_page, i));
                out.mode.push_back(as<int(void*)>(f.text_object_mode)(object));
                unsigned r = 0, g = 0, b = 0, a = 255;
                as<int(void*, int, unsigned*, unsigned*, unsigned*, unsigned*)>(f.text_fill_color)(
                    text_page, i, &r, &g, &b, &a);
                out.color.push_back((a & 255u) << 24 | (r & 255u) << 16 | (g & 255u) << 8 |
                                    (b & 255u));
                char name[256] = {};
                int flags = 0;
                const unsigned long length =
                    as<unsigned long(void*, int, void*, unsigned long, int*)>(f.text_font_info)(
                        text_page, i, name, sizeof name, &flags);
                name[sizeof name - 1] = '\0';
                out.flags.push_back(flags);
                const std::string font = length <= sizeof name ? std::string(name) : std::string();
                const auto [id, first] =
                    font_ids.try_emplace(font, static_cast<std::int32_t>(out.fonts.size()));
                if (first) out.fonts.push_back(font);
                out.font.push_back(id->second);
            }
        }
        out.run[k] = run;
        // A made-up character has no box of its own; its place is of no use to the reader.
        double x = 0, y = 0, l = 0, r = 0, b = 0, t = 0;
        FsRect loose{0, 0, 0, 0};
        if (out.generated[k] == 0) {
            char_origin(text_page, i, &x, &y);
            char_box(text_page, i, &l, &r, &b, &t);
            if (loose_box(text_page, i, &loose) == 0) {
                loose = {static_cast<float>(l), static_cast<float>(t), static_cast<float>(r),
                         static_cast<float>(b)};
            }
        }
        out.origin[2 * k] = static_cast<float>(x);
        out.origin[2 * k + 1] = static_cast<float>(y);
        float* box = &out.tight[4 * k];
        box[0] = static_cast<float>(l);
        box[1] = static_cast<float>(b);
        box[2] = static_cast<float>(r);
        box[3] = static_cast<float>(t);
        box = &out.loose[4 * k];
        box[0] = loose.left;
        box[1] = loose.bottom;
        box[2] = loose.right;
        box[3] = loose.top;
    }
    return out;
}

PageObjects read_page_objects(const PdfiumFunctions& f, void* page, std::size_t limit) {
    PageObjects out;
    const FsMatrix identity{1, 0, 0, 1, 0, 0};
    const int count = as<int(void*)>(f.page_count_objects)(page);
    for (int i = 0; i < count && !out.truncated; ++i) {
        void* object = as<void*(void*, int)>(f.page_object)(page, i);
        if (object != nullptr) collect(f, object, identity, 0, limit, out);
    }
    return out;
}

}  // namespace bookrag
