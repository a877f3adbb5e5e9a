// What stands in for canvas.cc in a build without cairo and pango (CMake's GLOSS_PICTURES=OFF).
#include "gloss/base/error.h"
#include "gloss/inspect/canvas.h"

namespace gloss::inspect {

struct Canvas::Drawing {};

bool pictures_available() {
  return false;
}

void require_pictures() {
  fail(
      "this gloss was built without pictures: build it with -DGLOSS_PICTURES=ON (Debian packages "
      "libcairo2-dev and "
      "libpango1.0-dev)");
}

Canvas::Canvas() {
  require_pictures();
}
Canvas::~Canvas() = default;

// Nobody has a canvas to call these on.
Text Canvas::text(std::string_view, const Font&, double) const {
  return {};
}
void Canvas::fill(std::span<const Box>, const Colour&) {}
void Canvas::polygon(std::span<const Point>, const Colour&) {}
void Canvas::disc(const Point&, double, const Colour&) {}
void Canvas::frame(const Box&, const Stroke&) {}
void Canvas::line(std::span<const Point>, const Stroke&) {}
void Canvas::line(const Point&, const Point&, const Stroke&) {}
void Canvas::hatch(std::span<const Box>, const Stroke&, double) {}
void Canvas::pixels(const Box&, const Pixels&) {}
void Canvas::draw(const Text&, const Point&, Anchor, const Colour&, double) {}
Picture Canvas::picture(PictureFormat, const Size&, const Colour&, std::string_view) const {
  return {};
}

}  // namespace gloss::inspect
