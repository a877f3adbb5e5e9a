#include "gloss/inspect/canvas.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <cairo.h>
#include <fontconfig/fontconfig.h>
#include <pango/pangocairo.h>
#include <pango/pangofc-font.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <utility>

#include "gloss/base/error.h"
#include "gloss/inspect/svg.h"
#include "gloss/io/quote.h"
#include "gloss/text/utf8.h"

namespace gloss::inspect {
namespace {

template <auto release>
struct Releaser {
  template <class T>
  void operator()(T* what) const {
    release(what);
  }
};
using Surface = std::unique_ptr<cairo_surface_t, Releaser<cairo_surface_destroy>>;
using Painter = std::unique_ptr<cairo_t, Releaser<cairo_destroy>>;
using FontOptions = std::unique_ptr<cairo_font_options_t, Releaser<cairo_font_options_destroy>>;
using FontDescription = std::unique_ptr<PangoFontDescription, Releaser<pango_font_description_free>>;
template <class T>
using Object = std::unique_ptr<T, Releaser<g_object_unref>>;

// Noto where it is installed: its letters match over all scripts. Fontconfig fills in what a family lacks.
constexpr const char* kFamilies = "Noto Sans, DejaVu Sans, sans-serif";
constexpr size_t kLongestText = 4000;  // bytes; nobody reads more in one line, and shaping takes its time

void require_ok(cairo_status_t status) {
  require(status == CAIRO_STATUS_SUCCESS, "the picture cannot be drawn: {}", cairo_status_to_string(status));
}

cairo_status_t append(void* closure, const unsigned char* data, unsigned int length) noexcept {
  try {
    static_cast<std::string*>(closure)->append(reinterpret_cast<const char*>(data), length);
    return CAIRO_STATUS_SUCCESS;
  } catch (const std::exception&) {
    return CAIRO_STATUS_NO_MEMORY;
  }
}

// Rounded here: cairo would cut off, and each format in its own way.
void set_colour(cairo_t* painter, const Colour& colour) {
  const uint32_t rgb = to_rgb24(colour);
  const auto channel = [&](int shift) { return (rgb >> shift & 255) / 255.0; };
  cairo_set_source_rgb(painter, channel(16), channel(8), channel(0));
}

void set_stroke(cairo_t* painter, const Stroke& stroke) {
  set_colour(painter, stroke.colour);
  cairo_set_line_width(painter, stroke.width);
  cairo_set_dash(painter, stroke.dashes.data(), static_cast<int>(stroke.dashes.size()), 0);
  cairo_set_line_join(painter, CAIRO_LINE_JOIN_ROUND);
}

void add_path(cairo_t* painter, std::span<const Box> boxes) {
  for (const Box& box : boxes) cairo_rectangle(painter, box.x, box.y, box.width, box.height);
}

void add_path(cairo_t* painter, std::span<const Point> points) {
  for (const Point& point : points) cairo_line_to(painter, point.x, point.y);
}

// Paints an image with its corner at (x, y), one of its pixels being `pixel` points large.
void paint(cairo_t* painter, cairo_surface_t* image, const Point& corner, const Size& pixel,
           cairo_filter_t filter) {
  cairo_save(painter);
  cairo_translate(painter, corner.x, corner.y);
  cairo_scale(painter, pixel.width, pixel.height);
  cairo_set_source_surface(painter, image, 0, 0);
  cairo_pattern_set_filter(cairo_get_source(painter), filter);
  cairo_paint(painter);
  cairo_restore(painter);
}

bool is_colour_font(PangoFont* font) {
  if (!PANGO_IS_FC_FONT(font)) return false;
  FcBool colour = FcFalse;
  FcPatternGetBool(pango_fc_font_get_pattern(PANGO_FC_FONT(font)), FC_COLOR, 0, &colour);
  return colour == FcTrue;
}

// Cairo puts emoji into SVG and PDF with one pixel a point, too coarse to be read; these have four.
void paint_colour_glyphs(cairo_t* painter, PangoFont* font, PangoGlyphString* glyphs, double x) {
  constexpr double kScale = 4;
  PangoRectangle ink;
  pango_glyph_string_extents(glyphs, font, &ink, nullptr);
  const auto units = [](int length) { return static_cast<double>(length) / PANGO_SCALE; };
  const int width = static_cast<int>(std::ceil(units(ink.width) * kScale)) + 2;
  const int height = static_cast<int>(std::ceil(units(ink.height) * kScale)) + 2;
  const Surface image(cairo_image_surface_create(CAIRO_FORMAT_ARGB32, width, height));
  const Painter inner(cairo_create(image.get()));
  cairo_scale(inner.get(), kScale, kScale);
  cairo_move_to(inner.get(), 1 / kScale - units(ink.x), 1 / kScale - units(ink.y));
  pango_cairo_show_glyph_string(inner.get(), font, glyphs);
  paint(painter, image.get(), {x + units(ink.x) - 1 / kScale, units(ink.y) - 1 / kScale},
        {1 / kScale, 1 / kScale}, CAIRO_FILTER_GOOD);
}

// A line with its baseline's left end at the origin.
void paint_line(cairo_t* painter, PangoLayoutLine* line) {
  const bool vector = cairo_surface_get_type(cairo_get_target(painter)) != CAIRO_SURFACE_TYPE_IMAGE;
  int x = 0;
  for (const GSList* item = line->runs; item; item = item->next) {
    const auto* run = static_cast<const PangoLayoutRun*>(item->data);
    PangoFont* font = run->item->analysis.font;
    const double left = static_cast<double>(x) / PANGO_SCALE;
    if (vector && is_colour_font(font)) {
      paint_colour_glyphs(painter, font, run->glyphs, left);
    } else {
      cairo_move_to(painter, left, 0);
      pango_cairo_show_glyph_string(painter, font, run->glyphs);
    }
    x += pango_glyph_string_get_width(run->glyphs);
  }
}

// Code points that Unicode keeps from text; cairo refuses them, and XML some. U+FDD0 to U+FDEF, and the last
// two of each plane.
bool is_noncharacter(std::string_view character) {
  const auto bits = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<unsigned char>(character[i])) & 0x3F;
  };
  if (character.size() < 3) return false;
  const uint32_t low =
      bits(character.size() - 3) << 12 | bits(character.size() - 2) << 6 | bits(character.size() - 1);
  if (character.size() == 3 && (low & 0xFFFF) >= 0xFDD0 && (low & 0xFFFF) <= 0xFDEF) return true;
  return (low & 0xFFFE) == 0xFFFE;
}

// Valid UTF-8 of bounded length without control bytes.
std::string showable(std::string_view utf8) {
  std::string all = text::replace_invalid_utf8(utf8);
  if (all.size() > kLongestText) {
    const size_t head = text::floor_to_character(all, kLongestText / 2);
    const size_t tail = text::floor_to_character(all, all.size() - kLongestText / 2);
    all = all.substr(0, head) + "\u2026" + all.substr(tail);
  }
  std::string out;
  for (size_t at = 0; at < all.size();) {
    const size_t length = text::utf8_length(std::string_view(all).substr(at));
    const std::string_view character = std::string_view(all).substr(at, length);
    out.append(is_noncharacter(character) ? "\uFFFD" : character);
    at += length;
  }
  return io::printable(out);
}

Object<PangoContext> make_context(PangoFontMap* fonts) {
  Object<PangoContext> context(pango_font_map_create_context(fonts));
  // Whole pixels would make a picture depend on its resolution, and each format another layout.
  const FontOptions options(cairo_font_options_create());
  cairo_font_options_set_hint_style(options.get(), CAIRO_HINT_STYLE_NONE);
  cairo_font_options_set_hint_metrics(options.get(), CAIRO_HINT_METRICS_OFF);
  cairo_font_options_set_antialias(options.get(), CAIRO_ANTIALIAS_GRAY);
  pango_cairo_context_set_font_options(context.get(), options.get());
  pango_context_set_round_glyph_positions(context.get(), FALSE);
  // Neither may the user's locale choose other fonts.
  pango_context_set_language(context.get(), pango_language_from_string("en"));
  return context;
}

}  // namespace

struct Canvas::Drawing {
  Object<PangoFontMap> fonts{pango_cairo_font_map_new()};
  Object<PangoContext> context = make_context(fonts.get());
  std::vector<std::function<void(cairo_t*)>> steps;
  int64_t missing_glyphs = 0;

  Picture paint(cairo_surface_t* surface, Picture picture, const Colour& page) const {
    const Painter painter(cairo_create(surface));
    if (cairo_surface_get_type(surface) == CAIRO_SURFACE_TYPE_IMAGE)
      cairo_scale(painter.get(), kPixelsPerPoint, kPixelsPerPoint);
    set_colour(painter.get(), page);
    cairo_paint(painter.get());
    for (const auto& step : steps) {
      cairo_save(painter.get());
      cairo_new_path(painter.get());
      step(painter.get());
      cairo_restore(painter.get());
    }
    require_ok(cairo_status(painter.get()));
    if (cairo_surface_get_type(surface) == CAIRO_SURFACE_TYPE_IMAGE)
      require_ok(cairo_surface_write_to_png_stream(surface, append, &picture.bytes));
    cairo_surface_finish(surface);
    require_ok(cairo_surface_status(surface));
    return picture;
  }
};

Canvas::Canvas() {
  require_pictures();
  drawing_ = std::make_unique<Drawing>();
}
Canvas::~Canvas() = default;

Text Canvas::text(std::string_view utf8, const Font& font, double max_width) const {
  const std::string shown = showable(utf8);
  Object<PangoLayout> layout(pango_layout_new(drawing_->context.get()));
  const FontDescription description(pango_font_description_from_string(kFamilies));
  pango_font_description_set_absolute_size(description.get(), font.size * PANGO_SCALE);
  if (font.bold) pango_font_description_set_weight(description.get(), PANGO_WEIGHT_BOLD);
  pango_layout_set_font_description(layout.get(), description.get());
  pango_layout_set_single_paragraph_mode(layout.get(), TRUE);
  pango_layout_set_text(layout.get(), shown.data(), static_cast<int>(shown.size()));
  const auto width_of = [&] {
    PangoRectangle logical;
    pango_layout_line_get_extents(pango_layout_get_line_readonly(layout.get(), 0), nullptr, &logical);
    return static_cast<double>(logical.width) / PANGO_SCALE;
  };
  Text text;
  text.width_ = width_of();
  if (text.width_ > max_width) {
    pango_layout_set_ellipsize(layout.get(), PANGO_ELLIPSIZE_MIDDLE);
    pango_layout_set_width(layout.get(), static_cast<int>(std::max(0.0, max_width) * PANGO_SCALE));
    text.width_ = width_of();
    text.shortened_ = true;
  }
  text.layout_ = std::shared_ptr<PangoLayout>(layout.release(), Releaser<g_object_unref>());
  return text;
}

void Canvas::fill(std::span<const Box> boxes, const Colour& colour) {
  drawing_->steps.emplace_back([boxes = std::vector(boxes.begin(), boxes.end()), colour](cairo_t* painter) {
    set_colour(painter, colour);
    add_path(painter, boxes);
    cairo_fill(painter);
  });
}

void Canvas::polygon(std::span<const Point> corners, const Colour& colour) {
  drawing_->steps.emplace_back(
      [corners = std::vector(corners.begin(), corners.end()), colour](cairo_t* painter) {
        set_colour(painter, colour);
        add_path(painter, corners);
        cairo_close_path(painter);
        cairo_fill(painter);
      });
}

void Canvas::disc(const Point& centre, double radius, const Colour& colour) {
  drawing_->steps.emplace_back([=](cairo_t* painter) {
    set_colour(painter, colour);
    cairo_arc(painter, centre.x, centre.y, radius, 0, 2 * std::numbers::pi);
    cairo_fill(painter);
  });
}

void Canvas::frame(const Box& box, const Stroke& stroke) {
  drawing_->steps.emplace_back([=](cairo_t* painter) {
    set_stroke(painter, stroke);
    cairo_set_line_join(painter, CAIRO_LINE_JOIN_MITER);
    add_path(painter, std::span(&box, 1));
    cairo_stroke(painter);
  });
}

void Canvas::line(std::span<const Point> points, const Stroke& stroke) {
  drawing_->steps.emplace_back(
      [points = std::vector(points.begin(), points.end()), stroke](cairo_t* painter) {
        set_stroke(painter, stroke);
        add_path(painter, points);
        cairo_stroke(painter);
      });
}

void Canvas::line(const Point& from, const Point& to, const Stroke& stroke) {
  const Point ends[] = {from, to};
  line(ends, stroke);
}

void Canvas::hatch(std::span<const Box> boxes, const Stroke& stroke, double spacing) {
  if (boxes.empty()) return;
  Box all = boxes.front();  // around all of them
  for (const Box& box : boxes) {
    const double right = std::max(all.x + all.width, box.x + box.width);
    const double bottom = std::max(all.y + all.height, box.y + box.height);
    all.x = std::min(all.x, box.x);
    all.y = std::min(all.y, box.y);
    all.width = right - all.x;
    all.height = bottom - all.y;
  }
  drawing_->steps.emplace_back(
      [boxes = std::vector(boxes.begin(), boxes.end()), stroke, spacing, all](cairo_t* painter) {
        add_path(painter, boxes);
        cairo_clip(painter);
        set_stroke(painter, stroke);
        for (double x = all.x - all.height + spacing / 2; x < all.x + all.width; x += spacing) {
          cairo_move_to(painter, x, all.y + all.height);
          cairo_line_to(painter, x + all.height, all.y);
        }
        cairo_stroke(painter);
      });
}

void Canvas::pixels(const Box& box, const Pixels& pixels) {
  Surface image(cairo_image_surface_create(CAIRO_FORMAT_RGB24, pixels.width, pixels.height));
  require_ok(cairo_surface_status(image.get()));
  const auto stride = static_cast<size_t>(cairo_image_surface_get_stride(image.get()));
  unsigned char* bytes = cairo_image_surface_get_data(image.get());
  for (size_t row = 0; row < static_cast<size_t>(pixels.height); ++row)
    std::copy_n(pixels.colours.data() + row * static_cast<size_t>(pixels.width), pixels.width,
                reinterpret_cast<uint32_t*>(bytes + row * stride));
  cairo_surface_mark_dirty(image.get());
  const std::shared_ptr<cairo_surface_t> kept(std::move(image));
  const Size pixel{box.width / pixels.width, box.height / pixels.height};
  drawing_->steps.emplace_back([kept, box, pixel](cairo_t* painter) {
    paint(painter, kept.get(), {box.x, box.y}, pixel, CAIRO_FILTER_NEAREST);
  });
}

void Canvas::draw(const Text& text, const Point& place, Anchor anchor, const Colour& colour, double angle) {
  const auto layout = std::static_pointer_cast<PangoLayout>(text.layout_);
  const double shift = anchor == Anchor::start ? 0 : anchor == Anchor::middle ? text.width_ / 2 : text.width_;
  drawing_->missing_glyphs += pango_layout_get_unknown_glyphs_count(layout.get());
  drawing_->steps.emplace_back([=](cairo_t* painter) {
    set_colour(painter, colour);
    cairo_translate(painter, place.x, place.y);
    cairo_rotate(painter, -angle * std::numbers::pi / 180);
    cairo_translate(painter, -shift, 0);
    paint_line(painter, pango_layout_get_line_readonly(layout.get(), 0));
  });
}

Picture Canvas::picture(PictureFormat format, const Size& size, const Colour& page,
                        std::string_view title) const {
  Picture picture{"", drawing_->missing_glyphs};
  std::string drawn;  // by a surface that writes when it is finished
  const std::string name = showable(title);
  switch (format) {
    case PictureFormat::png: {
      constexpr double kMost = 32767;  // pixels on a side of cairo's images
      const double width = std::ceil(size.width * kPixelsPerPoint);
      const double height = std::ceil(size.height * kPixelsPerPoint);
      require(std::max(width, height) <= kMost,
              "a PNG of {} x {} pixels is too large, at most {} are possible on a side: choose .svg or .pdf",
              width, height, kMost);
      const Surface surface(
          cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(width), static_cast<int>(height)));
      require_ok(cairo_surface_status(surface.get()));
      return drawing_->paint(surface.get(), std::move(picture), page);
    }
    case PictureFormat::pdf: {
      const Surface surface(cairo_pdf_surface_create_for_stream(append, &drawn, size.width, size.height));
      cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATE_DATE, "");  // none
      cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_TITLE, name.c_str());
      picture = drawing_->paint(surface.get(), std::move(picture), page);
      picture.bytes = std::move(drawn);
      return picture;
    }
    case PictureFormat::svg:
      break;
  }
  const Surface surface(cairo_svg_surface_create_for_stream(append, &drawn, size.width, size.height));
  picture = drawing_->paint(surface.get(), std::move(picture), page);
  picture.bytes = tidy_svg(drawn, name);
  return picture;
}

bool pictures_available() {
  return true;
}

void require_pictures() {
  // Pango itself counts names like "Sans" as fonts, and draws boxes where there is none.
  const FcFontSet* installed = FcConfigGetFonts(nullptr, FcSetSystem);
  require(installed && installed->nfont > 0,
          "pictures need a font, and none is installed: install the Debian package fonts-dejavu-core");
}

}  // namespace gloss::inspect
