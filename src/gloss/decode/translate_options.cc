#include "gloss/decode/translate_options.h"

#include <algorithm>
#include <thread>

namespace gloss::decode {

SearchOptions search_options(const TranslateOptions& options, const OwnEnd& own) {
  check_options(options);
  SearchOptions search = options.search;
  if (options.sample) search.sampling = options.sampling;
  if (options.plain) {
    if (search.no_repeat_ngram > 0)
      throw UsageError("--plain switches off n-gram blocks: leave out --plain or --no-repeat-ngram");
    if (search.max_length == 0)
      search.max_length = std::max(own.cap, std::max<int64_t>(search.min_length, 1));
    search.at_cap = own.at_cap;
  }
  validate(search);
  return search;
}

Crew crew(const TranslateOptions& options, int64_t sentences) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int threads = options.threads > 0 ? options.threads : std::max(cores, options.workers);
  // Workers never wait for each other, so they use the cores best; a few sentences cannot feed them.
  const int64_t fed = std::max<int64_t>(1, sentences / 4);
  const int workers =
      options.workers > 0 ? options.workers : static_cast<int>(std::min<int64_t>(threads, fed));
  return {workers, std::max(1, threads / workers)};
}

}  // namespace gloss::decode
