#include "gloss/evaluate/corpus.h"

#include "gloss/base/error.h"
#include "gloss/evaluate/unicode.h"

namespace gloss::evaluate {
namespace {

void check_lines(const std::vector<std::string>& lines, const std::string& name) {
  for (size_t i = 0; i < lines.size(); ++i) {
    try {
      decode_utf8(lines[i]);
    } catch (const Error& error) {
      fail("{}, line {}: {}", name, i + 1, error.what());
    }
  }
}

}  // namespace

void check_corpus(const std::vector<std::string>& hypotheses, const References& references) {
  require(!hypotheses.empty(), "there is nothing to score: the hypotheses have no lines");
  require(!references.empty(), "there is nothing to score against: no references were given");
  check_lines(hypotheses, "hypotheses");
  for (size_t r = 0; r < references.size(); ++r) {
    const std::string name = references.size() == 1 ? "reference" : fmt::format("reference {}", r + 1);
    require(references[r].size() == hypotheses.size(),
            "the hypotheses have {} lines and the {} has {}: they must correspond line for line",
            hypotheses.size(), name, references[r].size());
    check_lines(references[r], name);
  }
}

}  // namespace gloss::evaluate
