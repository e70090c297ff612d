// The reader of pages against a PDFium of our own: a table of functions over a page made up here.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "bookrag/page_text.hpp"
#include "testing.hpp"

using bookrag::PageObjects;
using bookrag::PageText;
using bookrag::PdfiumFunctions;

namespace {

struct Rect {
    float left, top, right, bottom;
};
struct Matrix {
    float a, b, c, d, e, f;
};

struct Object {
    int kind = 1;  // 1 text, 2 path, 3 image, 5 form
    Rect box{0, 0, 0, 0};
    Matrix matrix{1, 0, 0, 1, 0, 0};
    std::vector<Object*> children;
    std::string font = "Plain";
    double size = 10;
    int mode = 0;
    bool bounded = true;
};

struct Character {
    unsigned code;
    Object* object;
    bool generated = false;
    double x = 0;
    bool loose = true;
};

struct Page {
    std::vector<Character> characters;
    std::vector<Object*> objects;
    int asked_fonts = 0;
};

Page& page_of(void* handle) {
    return *static_cast<Page*>(handle);
}
Object& object_of(void* handle) {
    return *static_cast<Object*>(handle);
}
Character& at(void* page, int i) {
    return page_of(page).characters.at(static_cast<std::size_t>(i));
}

int count_chars(void* page) {
    return static_cast<int>(page_of(page).characters.size());
}
int count_nothing(void*) {
    return -1;
}  // PDFium's answer for a broken page
unsigned unicode(void* page, int i) {
    return at(page, i).code;
}
int char_box(void* page, int i, double* l, double* r, double* b, double* t) {
    *l = at(page, i).x;
    *r = at(page, i).x + 5;
    *b = 100;
    *t = 107;
    return 1;
}
int loose_box(void* page, int i, Rect* rect) {
    if (!at(page, i).loose) return 0;
    const auto x = static_cast<float>(at(page, i).x);
    *rect = {x, 108, x + 6, 98};
    return 1;
}
int char_origin(void* page, int i, double* x, double* y) {
    *x = at(page, i).x;
    *y = 100;
    return 1;
}
int text_matrix(void* page, int i, Matrix* m) {
    *m = at(page, i).object->matrix;
    return 1;
}
double font_size(void* page, int i) {
    return at(page, i).object->size;
}
int font_weight(void*, int) {
    return 700;
}
unsigned long font_info(void* page, int i, void* name, unsigned long room, int* flags) {
    ++page_of(page).asked_fonts;
    const std::string& font = at(page, i).object->font;
    if (font.size() < room) std::memcpy(name, font.c_str(), font.size() + 1);
    *flags = 4;
    return font.size() + 1;  // what it would need, as PDFium does
}
int fill_color(void*, int, unsigned* r, unsigned* g, unsigned* b, unsigned* a) {
    *r = 1;
    *g = 2;
    *b = 3;
    *a = 255;
    return 1;
}
int is_generated(void* page, int i) {
    return at(page, i).generated ? 1 : 0;
}
void* text_object(void* page, int i) {
    return at(page, i).object;
}
int render_mode(void* object) {
    return object_of(object).mode;
}

int count_objects(void* page) {
    return static_cast<int>(page_of(page).objects.size());
}
void* get_object(void* page, int i) {
    return page_of(page).objects.at(static_cast<std::size_t>(i));
}
int object_type(void* object) {
    return object_of(object).kind;
}
int object_bounds(void* object, float* l, float* b, float* r, float* t) {
    const Object& o = object_of(object);
    *l = o.box.left;
    *b = o.box.bottom;
    *r = o.box.right;
    *t = o.box.top;
    return o.bounded ? 1 : 0;
}
int object_matrix(void* object, Matrix* m) {
    *m = object_of(object).matrix;
    return 1;
}
int form_count(void* form) {
    return static_cast<int>(object_of(form).children.size());
}
void* form_object(void* form, unsigned long i) {
    return object_of(form).children.at(i);
}

template <class Function>
void* address(Function* function) {
    return reinterpret_cast<void*>(function);
}

PdfiumFunctions functions() {
    PdfiumFunctions f{};
    f.text_count_chars = address(count_chars);
    f.text_unicode = address(unicode);
    f.text_char_box = address(char_box);
    f.text_loose_char_box = address(loose_box);
    f.text_char_origin = address(char_origin);
    f.text_matrix = address(text_matrix);
    f.text_font_size = address(font_size);
    f.text_font_weight = address(font_weight);
    f.text_font_info = address(font_info);
    f.text_fill_color = address(fill_color);
    f.text_is_generated = address(is_generated);
    f.text_object = address(text_object);
    f.text_object_mode = address(render_mode);
    f.page_count_objects = address(count_objects);
    f.page_object = address(get_object);
    f.object_type = address(object_type);
    f.object_bounds = address(object_bounds);
    f.object_matrix = address(object_matrix);
    f.form_count_objects = address(form_count);
    f.form_object = address(form_object);
    return f;
}

Object path(float left, float bottom, float right, float top) {
    Object o;
    o.kind = 2;
    o.box = {left, top, right, bottom};
    return o;
}

Object form(std::vector<Object*> children, Matrix matrix) {
    Object o;
    o.kind = 5;
    o.children = std::move(children);
    o.matrix = matrix;
    return o;
}

}  // namespace

TEST(page_text, characters_and_runs) {
    Object plain;
    Object bold;
    bold.font = "Plain-Bold";
    bold.size = 12;
    bold.mode = 3;
    bold.matrix = {2, 0, 0, 2, 0, 0};
    // The first run goes on after the second: it is asked for once.
    Page page{{{'a', &plain, false, 10},
               {' ', nullptr, true, 99},
               {'b', &bold, false, 20, false},
               {0x1F600, &plain, false, 30}},
              {}};
    const PageText t = bookrag::read_page_text(functions(), &page, 4);
    CHECK_EQ(t.unicode, (std::vector<std::uint32_t>{'a', ' ', 'b', 0x1F600}));
    CHECK_EQ(t.run, (std::vector<std::int32_t>{0, 0, 1, 0}));
    CHECK_EQ(t.generated, (std::vector<std::uint8_t>{0, 1, 0, 0}));
    CHECK(t.fonts == (std::vector<std::string>{"Plain", "Plain-Bold"}));
    CHECK_EQ(t.font, (std::vector<std::int32_t>{0, 1}));
    CHECK_EQ(t.font_size, (std::vector<float>{10, 12}));
    CHECK_EQ(t.mode, (std::vector<std::int32_t>{0, 3}));
    CHECK_EQ(t.weight, (std::vector<std::int32_t>{700, 700}));
    CHECK_EQ(t.flags, (std::vector<std::int32_t>{4, 4}));
    CHECK_EQ(t.color, (std::vector<std::uint32_t>{0xFF010203, 0xFF010203}));
    CHECK_EQ(t.matrix, (std::vector<float>{1, 0, 0, 1, 2, 0, 0, 2}));
    CHECK_EQ(page.asked_fonts, 2);
    // A made-up character has no place, whatever PDFium would say.
    CHECK_EQ(t.origin, (std::vector<float>{10, 100, 0, 0, 20, 100, 30, 100}));
    CHECK_EQ((std::vector<float>(t.loose.begin(), t.loose.begin() + 8)),
             (std::vector<float>{10, 98, 16, 108, 0, 0, 0, 0}));
    // Without a loose box the ink's stands in.
    CHECK_EQ((std::vector<float>(t.loose.begin() + 8, t.loose.begin() + 12)),
             (std::vector<float>{20, 100, 25, 107}));
    CHECK_EQ((std::vector<float>(t.tight.begin() + 8, t.tight.begin() + 12)),
             (std::vector<float>{20, 100, 25, 107}));
}

TEST(page_text, made_up_characters_before_any_run) {
    Page page{{{'\r', nullptr, true}, {'\n', nullptr, true}}, {}};
    const PageText t = bookrag::read_page_text(functions(), &page, 10);
    CHECK_EQ(t.run, (std::vector<std::int32_t>{-1, -1}));
    CHECK(t.fonts.empty() && t.matrix.empty());
}

TEST(page_text, names_longer_than_the_buffer_are_unknown) {
    Object endless;
    endless.font = std::string(1000, 'x');
    Page page{{{'a', &endless}}, {}};
    const PageText t = bookrag::read_page_text(functions(), &page, 10);
    CHECK(t.fonts == std::vector<std::string>{""});
}

TEST(page_text, empty_and_broken_and_too_large) {
    Page page;
    CHECK(bookrag::read_page_text(functions(), &page, 0).unicode.empty());
    PdfiumFunctions broken = functions();
    broken.text_count_chars = address(count_nothing);
    CHECK(bookrag::read_page_text(broken, &page, 10).unicode.empty());
    Object plain;
    page.characters.assign(3, Character{'a', &plain});
    CHECK_EQ(bookrag::read_page_text(functions(), &page, 3).unicode.size(), std::size_t{3});
    CHECK_THROWS(too_large, bookrag::read_page_text(functions(), &page, 2));
}

TEST(page_text, objects_of_nested_forms_stand_where_they_are_shown) {
    Object line = path(1, 2, 11, 3);
    Object text;
    Object unknown = path(0, 0, 1, 1);
    unknown.bounded = false;
    // Turned by a quarter, then moved: (x, y) → (-y, x) → (-y + 100, x + 50).
    Object inner = form({&line, &text}, {0, 1, -1, 0, 0, 0});
    Object outer = form({&inner}, {1, 0, 0, 1, 100, 50});
    Page page{{}, {&line, &text, &unknown, &outer, nullptr}};
    const PageObjects found = bookrag::read_page_objects(functions(), &page, 10);
    CHECK_EQ(found.kind, (std::vector<std::int32_t>{2, 2}));
    CHECK_EQ(found.box, (std::vector<float>{1, 2, 11, 3, 97, 51, 98, 61}));
    CHECK(!found.truncated);
}

TEST(page_text, forms_that_hold_themselves_and_too_many_objects) {
    Object line = path(0, 0, 10, 1);
    Object endless = form({&line}, {1, 0, 0, 1, 0, 0});
    endless.children.push_back(&endless);
    Page page{{}, {&endless}};
    const PageObjects found = bookrag::read_page_objects(functions(), &page, 100);
    CHECK_EQ(found.kind.size(), std::size_t{4});  // once a level, four levels deep
    CHECK(!found.truncated);
    page.objects.assign(5, &line);
    const PageObjects cut = bookrag::read_page_objects(functions(), &page, 3);
    CHECK_EQ(cut.kind.size(), std::size_t{3});
    CHECK(cut.truncated);
}
