// Reads all characters and drawn objects of a PDF page in one go, through the C functions of a
// PDFium that the caller has loaded (this library neither links nor ships PDFium). A call per
// character from an interpreter costs more than the rest of the reading.
//
// Thread safety: PDFium has none. The caller holds its process-wide PDFium lock around each call
// here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bookrag {

// The functions that are needed, as addresses, in this order. All are plain C functions of PDFium's
// public headers.
struct PdfiumFunctions {
    void* text_count_chars;     // FPDFText_CountChars
    void* text_unicode;         // FPDFText_GetUnicode
    void* text_char_box;        // FPDFText_GetCharBox
    void* text_loose_char_box;  // FPDFText_GetLooseCharBox
    void* text_char_origin;     // FPDFText_GetCharOrigin
    void* text_matrix;          // FPDFText_GetMatrix
    void* text_font_size;       // FPDFText_GetFontSize
    void* text_font_weight;     // FPDFText_GetFontWeight
    void* text_font_info;       // FPDFText_GetFontInfo
    void* text_fill_color;      // FPDFText_GetFillColor
    void* text_is_generated;    // FPDFText_IsGenerated
    void* text_object;          // FPDFText_GetTextObject
    void* text_object_mode;     // FPDFTextObj_GetTextRenderMode
    void* page_count_objects;   // FPDFPage_CountObjects
    void* page_object;          // FPDFPage_GetObject
    void* object_type;          // FPDFPageObj_GetType
    void* object_bounds;        // FPDFPageObj_GetBounds
    void* object_matrix;        // FPDFPageObj_GetMatrix
    void* form_count_objects;   // FPDFFormObj_CountObjects
    void* form_object;          // FPDFFormObj_GetObject
};
inline constexpr std::size_t kPdfiumFunctionCount = sizeof(PdfiumFunctions) / sizeof(void*);

// Characters in PDFium's order. Coordinates are points of the unrotated page, origin at the bottom
// left, as PDFium gives them.
struct PageText {
    std::vector<std::uint32_t> unicode;
    std::vector<float>
        loose;  // 4 a character: left, bottom, right, top of the whole advance × font height
    std::vector<float> tight;   // 4 a character: left, bottom, right, top of the ink
    std::vector<float> origin;  // 2 a character: x, y on the baseline
    std::vector<std::uint8_t>
        generated;  // 1: PDFium made this character up (a space between words, a line end)
    std::vector<std::int32_t>
        run;  // index into the runs below; a run shares font, size, matrix and colour
    // One entry a run, that is a text object.
    std::vector<float> font_size;      // text-space units, before the matrix
    std::vector<float> matrix;         // 4 a run: a, b, c, d
    std::vector<std::int32_t> weight;  // 100 … 900, -1 when unknown
    std::vector<std::int32_t> flags;   // font descriptor flags
    std::vector<std::int32_t> mode;    // text render mode, -1 when unknown; 3 is invisible
    std::vector<std::uint32_t> color;  // 0xAARRGGBB fill
    std::vector<std::int32_t> font;    // index into fonts
    std::vector<std::string> fonts;    // base font names, UTF-8 as PDFium gives them
};

// Everything on the page that is not text. Boxes as in PageText.
struct PageObjects {
    std::vector<std::int32_t> kind;  // 3 image, 2 path, 4 shading (FPDF_PAGEOBJ_*)
    std::vector<float> box;          // 4 an object
    bool truncated = false;          // more than `limit` objects
};

// Complexity: one pass over the characters. Throws bookrag::Error (too_large) when the page has
// more than `limit`.
PageText read_page_text(const PdfiumFunctions& functions, void* text_page, std::size_t limit);

// Complexity: one pass over the objects, forms opened up to 4 deep.
PageObjects read_page_objects(const PdfiumFunctions& functions, void* page, std::size_t limit);

}  // namespace bookrag
