// The front door of translating: a model folder, lines in, translations out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gloss/decode/translate_options.h"
#include "gloss/decode/translation.h"
#include "gloss/models/model.h"
#include "gloss/text/tokenizer.h"

namespace gloss::decode {

// Where lines come from. Each function is called by one thread at a time.
struct LineSource {
  std::function<bool(std::string& line)> next;  // valid UTF-8 without line end; false at the end
  // Whether next() would return without waiting for more to be written: what was read is then worth holding
  // back a moment, to be translated together with what comes.
  std::function<bool()> ready = [] { return true; };
};

struct PairSource {
  std::function<bool(std::string& source, std::string& target)> next;
  std::function<bool()> ready = [] { return true; };
};

// An opened model folder. Immutable: any number of threads may translate with it at the same time, and share
// its weights, which are packed once for the instruction set of that moment (kernels::limit_isa comes first).
class Translator {
 public:
  // Throws Error naming the file for what is missing, damaged or does not fit together.
  // UsageError for a precision that the CPU does not serve; untold, it is the one that the folder was rounded
  // to.
  explicit Translator(const std::filesystem::path& folder,
                      std::optional<kernels::Precision> precision = std::nullopt);

  const models::Model& model() const { return *model_; }
  const text::Tokenizer& tokenizer() const { return tokenizer_; }
  // What the folder's generation_config.json says, or else its config.json.
  const OwnEnd& own_end() const { return own_end_; }

  // Receives the translations in the order of the lines, each as soon as those before it are delivered.
  // Called by one thread at a time, which need not be the caller's.
  using Deliver = std::function<void(Translation translation)>;
  // Translates until the source ends; one translation a line. What a line becomes depends on the line and the
  // options of search and repair alone, bit for bit. Memory is bounded by the length of lines, not by their
  // number. Reads from the source on the calling thread. What `source` throws is thrown again here once the
  // lines before are delivered; what `deliver` throws ends it at once. Throws UsageError for senseless
  // options, and for a cache in numbers that the model does not keep; Error as Shortlist::load does.
  void translate(const LineSource& source, const TranslateOptions& options, const Deliver& deliver) const;
  std::vector<Translation> translate(std::span<const std::string> lines,
                                     const TranslateOptions& options = {}) const;

  // log P of given translations, teacher-forced, pair by pair in order. `threads` 0: one a core. A pair whose
  // source has no text never reaches the model: no tokens, log-probability 0.
  void score(const PairSource& pairs, int threads, const std::function<void(ScoredPair)>& deliver) const;

 private:
  Translator(const std::filesystem::path& folder, std::optional<kernels::Precision> precision,
             std::future<text::Tokenizer> tokenizer);

  Arena arena_;
  std::unique_ptr<models::Model> model_;
  text::Tokenizer tokenizer_;
  OwnEnd own_end_;
};

}  // namespace gloss::decode
