#include "gloss/evaluate/alignment.h"

#include "fuzz.h"
#include "gloss/evaluate/symmetrise.h"

using namespace gloss;

// Both readers of word links on the lines of the input: what is read is inside its bounds and in order, and
// written it is read as the same again.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> lines(1);
  for (const char c : fuzz::text_of(data, size)) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  fuzz::accepts([&] {
    const auto alignments = evaluate::read_alignments(lines, "input");
    for (const evaluate::Alignment& each : alignments) {
      fuzz::check(evaluate::in_order(each) == each, "links in order");
      fuzz::check(evaluate::read_alignments({evaluate::moses_line(each)}, "line").at(0) == each,
                  "the same again");
    }
    for (size_t i = 1; i < alignments.size(); ++i)
      evaluate::symmetrise(alignments[i - 1], alignments[i], evaluate::Symmetrisation::grow_diag_final);
  });
  for (const int32_t base : {0, 1}) {
    fuzz::accepts([&] {
      const auto gold = evaluate::read_gold(lines, "input", static_cast<int64_t>(lines.size()),
                                            {.base = base, .words = {}});
      for (const evaluate::GoldAlignment& each : gold) {
        for (const evaluate::Link& link : each.possible)
          fuzz::check(link.source >= 0 && link.target >= 0, "words counted from 0");
        fuzz::check(each.sure.size() <= each.possible.size(), "what is sure is possible");
      }
    });
  }
  return 0;
}
