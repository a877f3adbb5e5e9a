// Pictures as files: SVG, PNG and PDF.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "gloss/io/atomic_file.h"

namespace gloss::inspect {

enum class PictureFormat { svg, png, pdf };

// By the ending of a file's name (.svg, .png or .pdf, in either case). Throws UsageError for any other.
PictureFormat picture_format(const std::filesystem::path& path);

// Whether this build can draw: CMake's GLOSS_PICTURES.
bool pictures_available();
// Throws Error in a build that cannot, and where no font is installed.
void require_pictures();

// The same drawing gives the same bytes, given the same libraries and fonts: no date and no number of a
// process is in them.
struct Picture {
  std::string bytes;           // of the whole file
  int64_t missing_glyphs = 0;  // characters that no installed font has: drawn as boxes with their code
};

// Where a picture goes; written whole or not at all.
class PictureFile {
 public:
  // Fails now, before the work, when the ending is unknown, the file cannot be written, or this build cannot
  // draw.
  explicit PictureFile(const std::filesystem::path& path);
  PictureFormat format() const { return format_; }
  void commit(const Picture& picture);

 private:
  PictureFormat format_;
  io::AtomicFile file_;
};

// What a picture that lacks glyphs needs, one line for standard error; empty where nothing is missing.
std::string missing_glyphs_text(int64_t missing_glyphs);

}  // namespace gloss::inspect
