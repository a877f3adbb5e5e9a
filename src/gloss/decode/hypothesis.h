// A translation as search found it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gloss/base/error.h"

namespace gloss::decode {

struct Hypothesis {
  std::vector<int32_t> tokens;  // with the end symbol where it is finished
  float log_probability = 0;    // sum of token_log_probabilities
  float score = 0;              // log_probability / tokens.size()^alpha
  // log P(token | tokens before, source) under the model, whatever masks and sampling left of it; 0 for an
  // end symbol forced at the length cap.
  std::vector<float> token_log_probabilities;
  bool finished = false;  // ends in the end symbol; if not, the cap or a dead end cut it
};

// The model gives NaN or infinity: its weights are damaged or its training diverged. `where` names the
// sentence as whoever asked knows it, `id` as the search does.
class NoNumber : public Error {
 public:
  NoNumber(std::string_view where, int64_t id, int64_t token)
      : Error(fmt::format(
            "{}: the model gives NaN or infinity for target token {}; its weights are damaged or its "
            "training diverged",
            where, token)),
        id_(id),
        token_(token) {}
  static NoNumber of_sentence(int64_t id, int64_t token) {
    return {fmt::format("sentence {} (counting from 0)", id), id, token};
  }
  // As a user counts lines: from 1.
  static NoNumber of_line(int64_t line, int64_t token) {
    return {fmt::format("line {}", line + 1), line, token};
  }
  int64_t id() const { return id_; }
  int64_t token() const { return token_; }

 private:
  int64_t id_, token_;
};

}  // namespace gloss::decode
