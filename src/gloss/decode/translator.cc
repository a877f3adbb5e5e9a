#include "gloss/decode/translator.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include "gloss/decode/line_parts.h"
#include "gloss/decode/line_queue.h"
#include "gloss/decode/search.h"
#include "gloss/decode/shortlist.h"
#include "gloss/io/input_file.h"
#include "gloss/io/json_file.h"
#include "gloss/models/model_folder.h"
#include "gloss/text/unknown.h"

namespace gloss::decode {
namespace {

// Lines read ahead and sorted by length, for each sentence of a batch: enough to keep workers busy, few
// enough that results flow.
constexpr size_t kWindowBatches = 4;
constexpr size_t kLeastWindow = 64;
constexpr int64_t kPiecesALine = 128;  // a window holds fewer lines where they are longer than this
constexpr int64_t kTokensAForcedBatch = 4096;

// generation_config.json, where there is one, says it instead of config.json.
OwnEnd own_end_of(const std::filesystem::path& folder, const models::Model& model) {
  OwnEnd own{model.cap(), model.forced_end() ? AtCap::force_end : AtCap::leave_open};
  const auto file = folder / "generation_config.json";
  if (!io::exists(file)) return own;
  const auto json = io::JsonObject::read(file);
  constexpr io::JsonObject::Range kIds{0, INT32_MAX};
  constexpr int64_t kLongest = 1 << 24;  // that a search can be asked for
  // It counts the start symbol too.
  if (json.has("max_length"))
    own.cap = std::clamp<int64_t>(json.whole("max_length", io::JsonObject::kPositive) - 1, 1, kLongest);
  const bool forced =
      json.has("forced_eos_token_id") && json.whole("forced_eos_token_id", kIds) == model.symbols().end;
  own.at_cap = forced ? AtCap::force_end : AtCap::leave_open;
  return own;
}

// What all workers of a translate() share.
struct Task {
  const models::Model& model;
  const text::Tokenizer& tokenizer;
  const SearchOptions& search;
  models::Caching caching;
  models::CachePrecision cache_precision;
  bool copy_unknown;
  const Shortlist* shortlist;  // null: all pieces
  LineQueue& queue;
};

std::string text_of(const Task& task, Context& context, const LinePart& part,
                    const std::vector<int32_t>& tokens) {
  const auto has = [](const std::vector<int32_t>& ids, int32_t id) {
    return std::ranges::find(ids, id) != ids.end();
  };
  const text::Tokenizer& tokenizer = task.tokenizer;
  if (!task.copy_unknown || (!has(part.source.ids, tokenizer.source_vocabulary().unknown_id()) &&
                             !has(tokens, tokenizer.target_vocabulary().unknown_id())))
    return tokenizer.decode_target(tokens);
  autograd::Tape<float> tape(context);
  const auto one = [](const std::vector<int32_t>& ids) {
    return Tokens{ids, Offsets({0, static_cast<int64_t>(ids.size())})};
  };
  const std::vector<int32_t> aligned =
      models::most_attended(task.model, tape, one(part.source.ids), one(tokens));
  return text::decode_with_unknowns(tokenizer, part.text, part.source, tokens, aligned);
}

std::vector<Candidate> candidates_of(const Task& task, Context& context, const Job& job,
                                     std::vector<Hypothesis> hypotheses) {
  std::vector<Candidate> candidates;
  candidates.reserve(hypotheses.size());
  for (Hypothesis& hypothesis : hypotheses) {
    candidates.push_back({text_of(task, context, job.text(), hypothesis.tokens), hypothesis.log_probability,
                          hypothesis.score, std::move(hypothesis.tokens),
                          std::move(hypothesis.token_log_probabilities), hypothesis.finished});
  }
  return candidates;
}

// One worker: its own threads, memory, cache and search.
void work(const Task& task, const Crew& crew) {
  Context context(crew.threads_each);
  const auto state = task.model.decoder_state(context, task.caching, task.cache_precision);
  TokensOf limit;
  if (task.shortlist) limit = [&](std::span<const int32_t> source) { return task.shortlist->tokens(source); };
  Search search(context, *state, task.search, limit);
  std::unordered_map<int64_t, Job> running;
  const auto on_done = [&](int64_t id, std::vector<Hypothesis> hypotheses) {
    const auto at = running.find(id);
    const Job job = at->second;
    running.erase(at);
    const int64_t rows = search.key_value_rows();
    task.queue.finish(job, candidates_of(task, context, job, std::move(hypotheses)), rows);
  };
  while (!task.queue.stopped()) {
    if (const int64_t room = search.room(); room > 0) {
      const bool busy = !search.idle();
      const auto jobs = task.queue.take(static_cast<size_t>(room), static_cast<size_t>(crew.workers), busy);
      if (jobs.empty() && !busy) return;
      for (const Job& job : jobs) {
        // The number that messages show: the line's, where it has one part.
        const int64_t id = job.line->result.line + (static_cast<int64_t>(job.part) << 40);
        running.emplace(id, job);
        search.submit(id, job.text().source.ids);
      }
    }
    try {
      search.step(on_done);
    } catch (const NoNumber& error) {
      throw NoNumber::of_line(running.at(error.id()).line->result.line, error.token());
    }
  }
}

// Threads that work until the queue is empty; joined however this ends.
class Workers {
 public:
  explicit Workers(const Task& task) : task_(task) {}
  ~Workers() {
    for (std::thread& thread : threads_) thread.join();
  }
  bool started() const { return !threads_.empty(); }
  void start(const Crew& crew) {
    for (int i = 0; i < crew.workers; ++i) {
      try {
        threads_.emplace_back([this, crew] {
          try {
            work(task_, crew);
          } catch (...) {
            task_.queue.stop(std::current_exception());
          }
        });
      } catch (const std::system_error& error) {
        fail("the system starts no more than {} threads ({}): ask for fewer workers", i, error.what());
      }
    }
  }

 private:
  Task task_;
  std::vector<std::thread> threads_;
};

}  // namespace

Translator::Translator(const std::filesystem::path& folder, std::optional<kernels::Precision> precision)
    : Translator(folder, precision,
                 // Beside the model, for large vocabularies take as long.
                 std::async(std::launch::async | std::launch::deferred,
                            [&folder] { return text::Tokenizer::load(folder); })) {}

Translator::Translator(const std::filesystem::path& folder, std::optional<kernels::Precision> precision,
                       std::future<text::Tokenizer> tokenizer)
    : model_(models::load_packed_model(folder, arena_, precision)), tokenizer_(tokenizer.get()) {
  tokenizer_.require_fits(model_->source_vocabulary(), model_->target_vocabulary(), model_->symbols().end,
                          folder);
  own_end_ = own_end_of(folder, *model_);
}

void Translator::translate(const LineSource& source, const TranslateOptions& options,
                           const Deliver& deliver) const {
  const SearchOptions search = search_options(options, own_end_);
  model_->require_cache(options.cache_precision);
  std::optional<Shortlist> shortlist;
  if (!options.shortlist.empty()) shortlist = Shortlist::load(options.shortlist, tokenizer_, options.likely);
  const Splitting splitting{options.split_sentences, options.max_source_length};
  const size_t window = std::max(kLeastWindow, kWindowBatches * static_cast<size_t>(search.batch));
  const auto pieces_a_window = static_cast<int64_t>(window) * kPiecesALine;

  LineQueue queue(static_cast<float>(search.length_penalty), deliver);
  int64_t lines_read = 0;
  bool ended = false;
  std::exception_ptr read_error;  // thrown once what stands before it is delivered
  // Some lines more, as many as there are or a window holds; at least one, but for the end of the input.
  const auto read_window = [&](int64_t& sentences) {
    std::vector<std::unique_ptr<PendingLine>> lines;
    int64_t pieces = 0;
    while (lines.size() < window && pieces < pieces_a_window && (lines.empty() || source.ready())) {
      auto line = std::make_unique<PendingLine>();
      Translation& result = line->result;
      try {
        ended = !source.next(result.source);
      } catch (...) {
        read_error = std::current_exception();
        ended = true;
      }
      if (ended) break;
      result.line = lines_read++;
      line->parts = split_line(tokenizer_, result.source, splitting);
      for (const LinePart& part : line->parts)
        result.source_tokens.insert(result.source_tokens.end(), part.source.ids.begin(),
                                    part.source.ids.end());
      line->pieces = static_cast<int64_t>(result.source_tokens.size());
      pieces += line->pieces;
      sentences += static_cast<int64_t>(line->parts.size());
      result.translated = !line->parts.empty();
      if (!result.translated) result.candidates.emplace_back().text = result.source;
      lines.push_back(std::move(line));
    }
    return lines;
  };

  {
    Workers workers({*model_, tokenizer_, search, options.cache ? models::Caching::on : models::Caching::off,
                     options.cache_precision, options.copy_unknown && !options.plain,
                     shortlist ? &*shortlist : nullptr, queue});
    try {
      while (!ended && queue.wait_for_room(window, pieces_a_window)) {
        int64_t sentences = 0;
        auto lines = read_window(sentences);
        if (sentences > 0 && !workers.started()) workers.start(crew(options, sentences));
        queue.add(std::move(lines));
      }
      queue.close();
    } catch (...) {
      queue.stop(std::current_exception());
    }
  }
  queue.rethrow();
  if (read_error) std::rethrow_exception(read_error);
}

std::vector<Translation> Translator::translate(std::span<const std::string> lines,
                                               const TranslateOptions& options) const {
  std::vector<Translation> translations;
  size_t next = 0;
  const LineSource source{[&](std::string& line) {
    if (next == lines.size()) return false;
    line = lines[next++];
    return true;
  }};
  translate(source, options,
            [&](Translation translation) { translations.push_back(std::move(translation)); });
  return translations;
}

void Translator::score(const PairSource& pairs, int threads,
                       const std::function<void(ScoredPair)>& deliver) const {
  TranslateOptions options;
  options.threads = threads;
  options.workers = 1;
  Context context(crew(options, 1).threads_each);
  std::string source_line, target_line;
  int64_t line = 0;
  for (bool more = true; more;) {
    Tokens sources, targets;
    std::vector<int64_t> source_lengths, target_lengths;
    std::vector<bool> blank;  // of each pair: nothing to translate
    int64_t tokens = 0;
    while (tokens < kTokensAForcedBatch && (blank.empty() || pairs.ready())) {
      more = pairs.next(source_line, target_line);
      if (!more) break;
      const auto source = tokenizer_.encode_source_ids(source_line);
      blank.push_back(source.size() == 1);
      if (blank.back()) {
        ++tokens;  // so that a batch ends
        continue;
      }
      const auto target = tokenizer_.encode_target_ids(target_line);
      sources.rows.insert(sources.rows.end(), source.begin(), source.end());
      targets.rows.insert(targets.rows.end(), target.begin(), target.end());
      source_lengths.push_back(static_cast<int64_t>(source.size()));
      target_lengths.push_back(static_cast<int64_t>(target.size()));
      tokens += source_lengths.back() + target_lengths.back();
    }
    sources.offsets = Offsets::of_lengths(source_lengths);
    targets.offsets = Offsets::of_lengths(target_lengths);
    std::vector<float> all;
    if (!source_lengths.empty()) {
      autograd::Tape<float> tape(context);
      all = model_->log_probabilities(tape, sources, targets);
    }
    for (int64_t pair = 0, i = -1; pair < std::ssize(blank); ++pair, ++line) {
      if (blank[static_cast<size_t>(pair)]) {
        deliver({});
        continue;
      }
      ++i;
      const int64_t begin = targets.offsets.begin(i), end = targets.offsets.end(i);
      ScoredPair scored{{targets.rows.begin() + begin, targets.rows.begin() + end},
                        {all.begin() + begin, all.begin() + end},
                        0};
      for (size_t t = 0; t < scored.log_probabilities.size(); ++t) {
        if (std::isnan(scored.log_probabilities[t])) throw NoNumber::of_line(line, static_cast<int64_t>(t));
        scored.log_probability += static_cast<double>(scored.log_probabilities[t]);
      }
      deliver(std::move(scored));
    }
  }
}

}  // namespace gloss::decode
