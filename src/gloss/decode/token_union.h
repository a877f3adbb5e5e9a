// The tokens that the sentences being translated may become, all together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace gloss::decode {

// What an output layer is limited to while sentences with sets of their own come and go. It may hold more
// than they need: what a sentence leaves behind the next one often takes, and each change costs a copy of the
// layer's rows.
class TokenUnion {
 public:
  explicit TokenUnion(int64_t vocabulary)
      : uses_(static_cast<size_t>(vocabulary)), places_(static_cast<size_t>(vocabulary), -1) {}
  // A sentence comes or goes with its tokens, none twice.
  void add(std::span<const int32_t> tokens);
  void remove(std::span<const int32_t> tokens);
  // Takes in what was added since the last time, and lets go of what nobody needs where that is more than
  // half. True where tokens() became others.
  bool settle();

  std::span<const int32_t> tokens() const { return tokens_; }  // ascending
  // Of a token of a sentence that was there at the last settle: where it stands in tokens().
  int32_t place(int32_t token) const { return places_[static_cast<size_t>(token)]; }

 private:
  std::vector<int32_t> uses_, places_;  // by token: sentences that have it; its place, or -1
  std::vector<int32_t> tokens_;
};

}  // namespace gloss::decode
