// Pictures read again by libraries that did not write them, for tests.
#pragma once

#include <expat.h>
#include <gtest/gtest.h>
#include <png.h>

#include <cmath>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "gloss/inspect/canvas.h"
#include "gloss/inspect/picture.h"

namespace gloss::inspect {

// Tests that draw report themselves skipped in a build that cannot.
class PictureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!pictures_available()) GTEST_SKIP() << "this build has no pictures (GLOSS_PICTURES=OFF)";
  }
};

// The pixels of a PNG.
class Png {
 public:
  explicit Png(const Picture& picture) {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    const std::string& bytes = picture.bytes;
    if (!png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()))
      throw std::runtime_error(std::string("no PNG: ") + image.message);
    image.format = PNG_FORMAT_RGB;
    width_ = image.width;
    height_ = image.height;
    pixels_.resize(PNG_IMAGE_SIZE(image));
    if (!png_image_finish_read(&image, nullptr, pixels_.data(), 0, nullptr))
      throw std::runtime_error(std::string("a damaged PNG: ") + image.message);
  }

  size_t width() const { return width_; }
  size_t height() const { return height_; }
  // 0xRRGGBB.
  uint32_t pixel(size_t x, size_t y) const {
    const uint8_t* at = pixels_.data() + 3 * (y * width_ + x);
    return static_cast<uint32_t>(at[0] << 16 | at[1] << 8 | at[2]);
  }
  // Pixels of this colour in a box in points; everywhere without one.
  size_t count(uint32_t colour, const Box& box = {0, 0, 1e9, 1e9}) const {
    const auto end = [](double v, size_t most) {
      return std::min(most, static_cast<size_t>(std::lround(v * Canvas::kPixelsPerPoint)));
    };
    size_t found = 0;
    for (size_t y = end(box.y, height_); y < end(box.y + box.height, height_); ++y) {
      for (size_t x = end(box.x, width_); x < end(box.x + box.width, width_); ++x)
        found += pixel(x, y) == colour;
    }
    return found;
  }
  std::set<uint32_t> colours() const {
    std::set<uint32_t> all;
    for (size_t y = 0; y < height_; ++y) {
      for (size_t x = 0; x < width_; ++x) all.insert(pixel(x, y));
    }
    return all;
  }

 private:
  size_t width_ = 0, height_ = 0;
  std::vector<uint8_t> pixels_;  // [height, width, 3]
};

// What an SVG says, parsed as XML. Throws std::runtime_error where it is not well-formed, where a name is
// given twice and where a reference leads nowhere.
class Svg {
 public:
  explicit Svg(const Picture& picture) {
    XML_Parser parser = XML_ParserCreate(nullptr);
    XML_SetUserData(parser, this);
    XML_SetElementHandler(parser, begin, end);
    XML_SetCharacterDataHandler(parser, characters);
    const int length = static_cast<int>(picture.bytes.size());
    const bool good = XML_Parse(parser, picture.bytes.data(), length, 1) == XML_STATUS_OK;
    if (!good) problem_ = XML_ErrorString(XML_GetErrorCode(parser));
    XML_ParserFree(parser);
    for (const std::string& name : references_) {
      if (!names_.contains(name)) problem_ = "nothing is named " + name;
    }
    if (!problem_.empty()) throw std::runtime_error(problem_);
  }

  const std::string& width() const { return width_; }
  const std::string& height() const { return height_; }
  const std::string& title() const { return title_; }
  const std::set<std::string>& names() const { return names_; }
  size_t elements(const std::string& name) const { return static_cast<size_t>(elements_.count(name)); }

 private:
  static void begin(void* data, const char* name, const char** attributes) {
    Svg& svg = *static_cast<Svg*>(data);
    svg.elements_.insert(name);
    svg.in_title_ = std::string_view(name) == "title";
    for (; *attributes; attributes += 2) {
      const std::string key = attributes[0], value = attributes[1];
      if (key == "id" && !svg.names_.insert(value).second) svg.problem_ = value + " is named twice";
      const size_t link = key == "xlink:href" && value.starts_with('#') ? 0 : value.find("url(#");
      if (link != std::string::npos) {
        const size_t start = value.find('#', link) + 1;
        svg.references_.insert(value.substr(start, std::min(value.find(')', start), value.size()) - start));
      }
      if (std::string_view(name) == "svg" && key == "width") svg.width_ = value;
      if (std::string_view(name) == "svg" && key == "height") svg.height_ = value;
    }
  }
  static void end(void* data, const char*) { static_cast<Svg*>(data)->in_title_ = false; }
  static void characters(void* data, const char* text, int length) {
    Svg& svg = *static_cast<Svg*>(data);
    if (svg.in_title_) svg.title_.append(text, static_cast<size_t>(length));
  }

  std::multiset<std::string> elements_;
  std::set<std::string> names_, references_;
  std::string width_, height_, title_, problem_;
  bool in_title_ = false;
};

}  // namespace gloss::inspect
