// How the commands that translate, score and explain open a model.
#pragma once

#include <string>

#include "gloss/base/options.h"
#include "gloss/decode/translator.h"

namespace gloss::cli {

struct LoadFlags {
  std::string precision;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit(Field("precision", "P", "float32, bfloat16 or int8 products; untold as stored, mostly float32"),
          self.precision);
  }
  // Throws UsageError for a name that is none, or a precision that this CPU does not serve.
  decode::Translator open(const std::string& folder) const {
    if (precision.empty()) return decode::Translator(folder);
    return decode::Translator(folder, kernels::parse_precision(precision));
  }
};

}  // namespace gloss::cli
