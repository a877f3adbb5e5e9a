#include "gloss/text/sentences.h"

#include <unicode/brkiter.h>
#include <unicode/locid.h>
#include <unicode/utext.h>

#include <memory>

#include "gloss/base/error.h"

namespace gloss::text {

std::vector<size_t> sentence_starts(std::string_view line) {
  if (line.empty()) return {};
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> sentences(
      icu::BreakIterator::createSentenceInstance(icu::Locale::getRoot(), status));
  require(U_SUCCESS(status), "ICU has no sentence rules ({}): install its data (Debian: libicu72)",
          u_errorName(status));
  const std::unique_ptr<UText, decltype(&utext_close)> text(
      utext_openUTF8(nullptr, line.data(), static_cast<int64_t>(line.size()), &status), &utext_close);
  if (U_SUCCESS(status)) sentences->setText(text.get(), status);
  require(U_SUCCESS(status), "a line of {} bytes cannot be split into sentences ({})", line.size(),
          u_errorName(status));
  std::vector<size_t> starts;
  for (int32_t at = sentences->first(); at != icu::BreakIterator::DONE; at = sentences->next()) {
    if (static_cast<size_t>(at) < line.size()) starts.push_back(static_cast<size_t>(at));
  }
  return starts;
}

}  // namespace gloss::text
