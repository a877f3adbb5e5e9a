#include "gloss/inspect/picture.h"

#include <algorithm>

#include "gloss/base/error.h"
#include "gloss/io/quote.h"

namespace gloss::inspect {
namespace {

PictureFormat format_that_can_be_drawn(const std::filesystem::path& path) {
  const PictureFormat format = picture_format(path);
  require_pictures();
  return format;
}

}  // namespace

PictureFormat picture_format(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  if (ending == ".svg") return PictureFormat::svg;
  if (ending == ".png") return PictureFormat::png;
  if (ending == ".pdf") return PictureFormat::pdf;
  throw UsageError(fmt::format("a picture's name must end in .svg, .png or .pdf, not as {} does",
                               io::in_quotes(io::shown(path))));
}

PictureFile::PictureFile(const std::filesystem::path& path)
    : format_(format_that_can_be_drawn(path)), file_(path) {}

void PictureFile::commit(const Picture& picture) {
  file_.write(picture.bytes);
  file_.commit();
}

std::string missing_glyphs_text(int64_t missing_glyphs) {
  if (missing_glyphs == 0) return "";
  return fmt::format(
      "no installed font has {} of the characters, which are drawn as boxes with their codes: install the "
      "Debian "
      "packages fonts-noto-core, fonts-noto-cjk and fonts-noto-color-emoji",
      missing_glyphs);
}

}  // namespace gloss::inspect
