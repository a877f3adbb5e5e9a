// How a Translator translates and scores: search, repairs, division of labour.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gloss/base/options.h"
#include "gloss/decode/options.h"
#include "gloss/decode/shortlist.h"
#include "gloss/models/cache_memory.h"

namespace gloss::decode {

// --cache-precision, with the help of the command that has it.
inline Field cache_precision_field(std::string_view help) {
  using models::CachePrecision;
  return Field("cache-precision", "P", help)
      .choices<CachePrecision>(
          {{CachePrecision::float32, "float32"}, {CachePrecision::bfloat16, "bfloat16"}});
}

struct TranslateOptions {
  SearchOptions search;  // `sampling` is made of the next two by search_options()
  bool sample = false;
  Sampling sampling;

  // Repairs. `plain` switches off whatever other programs do not do, for comparison with them: the copying,
  // the n-gram blocks, and the length cap that comes from the source (the model's own cap holds instead).
  bool copy_unknown = true;  // source text without pieces is copied to where attention points to it
  bool plain = false;

  bool split_sentences = false;     // every sentence of a line is translated on its own
  int64_t max_source_length = 512;  // pieces; a longer line is split at sentences, words or pieces
  bool cache = true;                // remember keys and values; off: compute every prefix again
  // In which numbers; without a cache they are rounded where it would round them.
  models::CachePrecision cache_precision = models::CachePrecision::float32;

  // A table that `gloss shortlist` makes: each sentence becomes pieces that are likely for it and no others
  // (Shortlist). Empty: all pieces.
  std::string shortlist;
  ShortlistOptions likely;  // its `threshold` is no option of the command line

  int threads = 0;  // in all; 0: one a core
  int workers = 0;  // that translate different sentences, `threads` divided among them; 0: as many as pay

  // In the order of the help.
  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    auto& search = self.search;
    visit(Field("beam", "N", "hypotheses kept at each step; 1 is greedy").range(1, 4096), search.beam);
    visit(Field("n-best", "N", "translations of each line, the best first").range(1, 4096), search.n_best);
    visit(Field("length-penalty", "A", "score = log-probability / length^A").range(-100, 100),
          search.length_penalty);
    visit(Field("patience", "P", "end a sentence after P x beam hypotheses; 0: when no other can win")
              .range(0, 1e6),
          search.patience);
    visit(Field("min-length", "N", "least pieces of a translation, with the end symbol").range(0, 1 << 24),
          search.min_length);
    visit(Field("max-length", "N", "most pieces of a translation; 0: 3 x source + 10").range(0, 1 << 24),
          search.max_length);
    visit(Field("no-repeat-ngram", "N", "never say the same N pieces twice; 0: off").range(0, 1 << 20),
          search.no_repeat_ngram);
    visit(Field("sample", "", "draw at random, keyed by seed and text, instead of searching"), self.sample);
    visit(Field("temperature", "T", "of --sample: below 1 likely pieces gain, above 1 the others do")
              .range(1e-4, 1e4),
          self.sampling.temperature);
    visit(
        Field("top-k", "K", "of --sample: draw from the K likeliest pieces; 0: from all").range(0, INT32_MAX),
        self.sampling.top_k);
    visit(Field("top-p", "P", "of --sample: draw from the likeliest pieces that make up share P")
              .range(1e-9, 1),
          self.sampling.top_p);
    visit(Field("seed", "N", "of --sample: other numbers give other draws").at_least(0), self.sampling.seed);
    visit(Field("batch", "N", "sentences a worker translates at a time").range(1, 1 << 16), search.batch);
    visit(Field("threads", "N", "threads in all, divided among the workers; 0: one a core").range(0, 1024),
          self.threads);
    visit(Field("workers", "N", "groups of threads with sentences of their own; 0: as many as pay")
              .range(0, 1024),
          self.workers);
    visit(cache_precision_field("of kept keys and values; bfloat16 takes half the memory"),
          self.cache_precision);
    visit(
        Field("shortlist", "TABLE", "choose among the pieces that are likely by a table of gloss shortlist"),
        self.shortlist);
    visit(Field("shortlist-first", "N", "of --shortlist: frequent pieces that every sentence may have")
              .range(0, INT32_MAX),
          self.likely.first);
    visit(
        Field("shortlist-best", "N", "of --shortlist: translations of each source piece").range(0, INT32_MAX),
        self.likely.best);
    visit(Field("cache", "", "compute every prefix anew, for comparison"), self.cache);
    visit(Field("split-sentences", "", "translate each sentence of a line on its own"), self.split_sentences);
    visit(Field("max-source-length", "N", "pieces; a longer line is translated in parts").range(8, 1 << 20),
          self.max_source_length);
    visit(Field("copy-unknown", "", "leave out text without pieces instead of copying it"),
          self.copy_unknown);
    visit(Field("plain", "", "no repairs at all, for comparison with other programs"), self.plain);
  }
};

// When a translation ends by the model's own files: no longer than `cap` tokens, and then in this way.
struct OwnEnd {
  int64_t cap = 512;
  AtCap at_cap = AtCap::force_end;
};

// What the search is told. A plain one ends as the model's files have it. Throws UsageError for options that
// exclude each other or make no sense.
SearchOptions search_options(const TranslateOptions& options, const OwnEnd& own = {});

// Threads and workers for at least `sentences` sentences that are at hand.
struct Crew {
  int workers = 1;
  int threads_each = 1;
};
Crew crew(const TranslateOptions& options, int64_t sentences);

}  // namespace gloss::decode
