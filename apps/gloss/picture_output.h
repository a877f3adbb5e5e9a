// Pictures that commands write.
#pragma once

#include "gloss/inspect/picture.h"
#include "streams.h"

namespace gloss::cli {

// Says which characters no font could draw.
inline void tell_missing_glyphs(const inspect::Picture& picture) {
  if (picture.missing_glyphs > 0) say("gloss: " + inspect::missing_glyphs_text(picture.missing_glyphs));
}

// The file takes its place, and what it lacks is said.
inline void commit(inspect::PictureFile& file, const inspect::Picture& picture) {
  file.commit(picture);
  tell_missing_glyphs(picture);
}

}  // namespace gloss::cli
