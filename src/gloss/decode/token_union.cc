#include "gloss/decode/token_union.h"

namespace gloss::decode {

void TokenUnion::add(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) ++uses_[static_cast<size_t>(token)];
}

void TokenUnion::remove(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) --uses_[static_cast<size_t>(token)];
}

bool TokenUnion::settle() {
  int64_t needed = 0, missing = 0;
  for (size_t token = 0; token < uses_.size(); ++token) {
    if (uses_[token] == 0) continue;
    ++needed;
    if (places_[token] < 0) ++missing;
  }
  const bool wasteful = std::ssize(tokens_) + missing > 2 * needed;
  if (missing == 0 && !wasteful) return false;
  tokens_.clear();
  for (size_t token = 0; token < uses_.size(); ++token) {
    const bool stays = uses_[token] > 0 || (!wasteful && places_[token] >= 0);
    places_[token] = stays ? static_cast<int32_t>(tokens_.size()) : -1;
    if (stays) tokens_.push_back(static_cast<int32_t>(token));
  }
  return true;
}

}  // namespace gloss::decode
