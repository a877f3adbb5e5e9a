#include "gloss/text/training.h"

#include <malloc.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <optional>
#include <unordered_map>

#include "gloss/base/error.h"
#include "gloss/base/random.h"
#include "gloss/text/space.h"
#include "gloss/text/utf8.h"

namespace gloss::text {
namespace {

using Files = std::span<const std::filesystem::path>;

// SentencePiece skips lines that are longer and cannot count past 65,535 characters without a space: long
// lines are handed over in parts.
constexpr size_t kMaxPartBytes = 4000;
// Fixed, because the unigram model's sums depend on it.
constexpr const char* kTrainingThreads = "4";

struct Extent {
  int64_t lines = 0;  // with text
  int64_t bytes = 0;
};

Extent measure(Files files, InvalidUtf8 invalid) {
  Extent extent;
  for (const auto& file : files) {
    LineReader reader(file, invalid);
    for (Line line; reader.next(line);) {
      if (is_blank(line.text)) continue;
      ++extent.lines;
      extent.bytes += static_cast<int64_t>(line.text.size());
    }
  }
  return extent;
}

// Hands `wanted` of `total` lines to SentencePiece, one at a time, each set of lines equally likely:
// selection sampling (Knuth, The Art of Computer Programming 2, algorithm 3.4.2 S).
class SampledLines final : public sentencepiece::SentenceIterator {
 public:
  SampledLines(Files files, InvalidUtf8 invalid, int64_t wanted, int64_t total, uint64_t seed)
      : files_(files),
        invalid_(invalid),
        wanted_(wanted),
        total_(total),
        key_(RandomKey(seed).with("sample")) {
    Next();
  }
  bool done() const override { return done_; }
  const std::string& value() const override { return part_; }
  sentencepiece::util::Status status() const override { return {}; }
  void rethrow_error() const {
    if (error_) std::rethrow_exception(error_);
  }

  void Next() override {
    try {
      if (rest_.empty() && !next_line()) {
        done_ = true;
        return;
      }
      take_part();
    } catch (...) {  // must not pass through SentencePiece
      error_ = std::current_exception();
      done_ = true;
    }
  }

 private:
  bool next_line() {
    while (chosen_ < wanted_) {
      if (!reader_) {
        if (file_ == files_.size()) return false;
        reader_.emplace(files_[file_++], invalid_);
      }
      if (!reader_->next(line_)) {
        reader_.reset();
        continue;
      }
      if (is_blank(line_.text)) continue;
      const int64_t left = total_ - seen_;
      const bool take = static_cast<int64_t>(key_.below(static_cast<uint64_t>(seen_),
                                                        static_cast<uint64_t>(left))) < wanted_ - chosen_;
      ++seen_;
      if (!take) continue;
      ++chosen_;
      rest_ = line_.text;
      return true;
    }
    return false;
  }

  // Cuts at the last space where there is one.
  void take_part() {
    size_t end = rest_.size();
    if (end > kMaxPartBytes) {
      const size_t space = rest_.rfind(' ', kMaxPartBytes);
      end = space != std::string_view::npos && space > 0 ? space : floor_to_character(rest_, kMaxPartBytes);
    }
    part_.assign(rest_.substr(0, end));
    rest_.remove_prefix(end);
  }

  Files files_;
  InvalidUtf8 invalid_;
  int64_t wanted_, total_;
  RandomKey key_;
  size_t file_ = 0;
  std::optional<LineReader> reader_;
  Line line_;
  std::string_view rest_;  // of line_
  std::string part_;
  int64_t seen_ = 0, chosen_ = 0;
  bool done_ = false;
  std::exception_ptr error_;
};

std::string names(Files files) {
  std::string text;
  for (const auto& file : files) text += (text.empty() ? "" : " and ") + file.string();
  return text;
}

// SentencePiece's complaint ends in "... smaller than required_chars. 100 vs 431. ...".
std::optional<int> characters_needed(std::string_view complaint) {
  if (complaint.find("required_chars") == std::string_view::npos) return std::nullopt;
  const size_t versus = complaint.find(" vs ");
  if (versus == std::string_view::npos) return std::nullopt;
  const int needed = std::atoi(std::string(complaint.substr(versus + 4)).c_str());
  return needed > 0 ? std::optional(needed) : std::nullopt;
}

class Training {
 public:
  Training(Files files, const SegmenterOptions& options) : files_(files), options_(options) {
    extent_ = measure(files, options.invalid);
    require(extent_.lines > 0, "{} hold{} no text: a vocabulary needs at least one line", names(files),
            files.size() == 1 ? "s" : "");
    const int64_t default_bytes = int64_t{options.kind == SegmentationKind::bpe ? 64 : 16} << 20;
    const int64_t max_bytes = options.max_bytes > 0 ? options.max_bytes : default_bytes;
    const double share = std::min(1.0, static_cast<double>(max_bytes) / static_cast<double>(extent_.bytes));
    wanted_ = static_cast<int64_t>(share * static_cast<double>(extent_.lines));
    wanted_ = std::clamp<int64_t>(wanted_, 1, std::max<int64_t>(1, options.max_lines));
    wanted_ = std::min(wanted_, extent_.lines);
  }

  Segmenter run(const char* kind, bool limit_is_hard) const {
    SampledLines lines(files_, options_.invalid, wanted_, extent_.lines, options_.seed);
    std::string model;
    const auto status = sentencepiece::SentencePieceTrainer::Train(
        std::unordered_map<std::string, std::string>{
            {"model_type", kind},
            {"vocab_size", std::to_string(options_.pieces)},
            {"hard_vocab_limit", limit_is_hard ? "true" : "false"},
            {"character_coverage", fmt::format("{}", options_.character_coverage)},
            {"split_digits", options_.split_digits ? "true" : "false"},
            {"normalization_rule_name", options_.normalisation},
            {"eos_id", "0"},
            {"unk_id", "1"},
            {"bos_id", "-1"},
            {"pad_id", "-1"},
            {"max_sentence_length", std::to_string(2 * kMaxPartBytes)},
            {"num_threads", kTrainingThreads},
            {"minloglevel", "3"}},  // a library does not print
        &lines, &model);
    lines.rethrow_error();
    if (!status.ok()) {
      if (const auto needed = characters_needed(status.error_message()))
        fail(
            "{} pieces cannot hold the different characters of {}, which need {}: ask for a larger "
            "vocabulary, "
            "or for a character coverage below {} (0.9995 suits Chinese and Japanese)",
            options_.pieces, names(files_), *needed, options_.character_coverage);
      fail("no segmentation model can be made from {}: {}", names(files_), status.error_message());
    }
    Segmenter segmenter = Segmenter::from_bytes(std::move(model), "the new segmentation model");
    require(segmenter.size() > kSpecials, "{} hold{} no text: a vocabulary needs at least one line",
            names(files_), files_.size() == 1 ? "s" : "");
    return segmenter;
  }

  const Extent& extent() const { return extent_; }
  int64_t wanted() const { return wanted_; }

 private:
  static constexpr int32_t kSpecials = 2;  // </s> and <unk>
  Files files_;
  const SegmenterOptions& options_;
  Extent extent_;
  int64_t wanted_ = 0;
};

}  // namespace

TrainedSegmenter train_segmenter(Files files, const SegmenterOptions& options) {
  require(options.pieces >= 4, "a vocabulary of {} pieces is too small: ask for thousands", options.pieces);
  require(options.character_coverage >= 0.98 && options.character_coverage <= 1,
          "the character coverage is {}, but must be between 0.98 and 1", options.character_coverage);
  const Training training(files, options);
  const bool bpe = options.kind == SegmentationKind::bpe;
  // Where normalisation leaves nothing (control characters alone) the unigram trainer ends the program; the
  // character model of the same lines says so instead.
  if (!bpe) training.run("char", false);
  Segmenter segmenter = training.run(bpe ? "bpe" : "unigram", false);
#ifdef __GLIBC__
  malloc_trim(0);  // training a translation model comes next and should not carry these pages along
#endif
  TrainedSegmenter result{std::move(segmenter),    options.pieces,    0,
                          training.extent().lines, training.wanted(), ""};
  result.actual = result.segmenter.size();
  if (result.actual < result.requested)
    result.message = fmt::format("{} can give no more than {} pieces; {} were asked for", names(files),
                                 result.actual, result.requested);
  return result;
}

TrainedTokenizer train_tokenizer(const std::filesystem::path& source, const std::filesystem::path& target,
                                 const TokenizerOptions& options) {
  require(options.vocabulary_size >= 5, "a vocabulary of {} pieces is too small: ask for thousands",
          options.vocabulary_size);
  SegmenterOptions segmenter = options.segmenter;
  segmenter.pieces = options.vocabulary_size - 1;  // <pad> is not SentencePiece's
  std::vector<std::string> messages;
  const auto train = [&](Files files) {
    TrainedSegmenter trained = train_segmenter(files, segmenter);
    if (!trained.message.empty()) messages.push_back(trained.message);
    return trained.segmenter;
  };
  const auto vocabulary = [](const Segmenter& model) {
    std::vector<std::string> pieces;
    pieces.reserve(static_cast<size_t>(model.size()) + 1);
    for (int32_t id = 0; id < model.size(); ++id) pieces.push_back(model.piece(id));
    pieces.emplace_back(kPadPiece);
    return Vocabulary(std::move(pieces));
  };
  if (options.joint) {
    const std::filesystem::path files[] = {source, target};
    const Segmenter both = train(files);
    return {Tokenizer(both, both, vocabulary(both)), std::move(messages)};
  }
  const Segmenter source_model = train({&source, 1}), target_model = train({&target, 1});
  return {Tokenizer(source_model, target_model, vocabulary(source_model), vocabulary(target_model)),
          std::move(messages)};
}

}  // namespace gloss::text
