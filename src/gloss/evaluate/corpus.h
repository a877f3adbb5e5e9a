// What every corpus metric asks of its input.
#pragma once

#include <string>
#include <vector>

namespace gloss::evaluate {

// The references of a corpus as sacreBLEU takes them: references[r][i] is the r-th reference of line i.
using References = std::vector<std::vector<std::string>>;

// The version of sacreBLEU whose scores and signatures ours equal; the tests compare with it.
inline constexpr const char* kSacreBleuVersion = "2.6.0";

// Throws Error when there is nothing to score, when line counts differ and for invalid UTF-8, naming the
// line.
void check_corpus(const std::vector<std::string>& hypotheses, const References& references);

}  // namespace gloss::evaluate
