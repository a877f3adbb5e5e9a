// gloss shortlist: a table of which target pieces a source piece becomes, for searching among few pieces.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "gloss/data/lexical_counts.h"
#include "gloss/decode/aligner.h"
#include "gloss/text/words.h"
#include "load_flags.h"
#include "option_table.h"
#include "streams.h"
#include "translate_flags.h"

namespace gloss::cli {
namespace {

using decode::SentencePair;
using evaluate::Alignment;

constexpr size_t kPairsATime = 512;  // batches are full, and enough to tell where attention aligns

struct ShortlistCommand {
  std::string model, source, target, links, table, output;
  int64_t best = 100;
  LoadFlags load;
  int threads = 0;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit(Field("source", "FILE", "text, one segment a line"), self.source);
    visit(Field("target", "FILE", "its translation, line for line"), self.target);
    visit(Field("links", "FILE", "its word links, as gloss align prints them; untold the model's own"),
          self.links);
    visit(Field("table", "FILE", "instead of a text a table of words: target source probability"),
          self.table);
    visit(Field("output", "FILE", "write to a file, whole or not at all, instead of standard output"),
          self.output);
    visit(Field("best", "N", "translations to keep of each source piece").range(1, 1'000'000), self.best);
    LoadFlags::fields(self.load, visit);
    visit(Field("threads", "N", "threads to find links with; 0: one a core").range(0, 1024), self.threads);
  }
};

void count(data::LexicalCounts& counts, const text::Tokenizer& tokenizer,
           const std::vector<SentencePair>& pairs, const std::vector<Alignment>& links) {
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto& [source, target] = pairs[i];
    const text::EncodedLine from = tokenizer.encode_source(source), to = tokenizer.encode_target(target);
    counts.add(from, to, data::links_of_pieces(links[i], {source, from}, {target, to}));
  }
}

// The links of some pairs after those that were asked for before: from a file, or by attention.
class Linker {
 public:
  virtual ~Linker() = default;
  virtual std::vector<Alignment> of(const std::vector<SentencePair>& pairs) = 0;
  virtual void end() {}  // there are no more pairs
  virtual std::string name() const = 0;
};

// A guided head aligns where it was guided to. For other models the usual place may be off by a step, which
// ruins every row: the layer, head and step are taken whose links of the first pairs leave least doubt.
class AttentionLinker final : public Linker {
 public:
  explicit AttentionLinker(const ShortlistCommand& command)
      : translator_(command.load.open(command.model)), aligner_(translator_, command.threads) {
    if (aligner_.usual().head) choice_ = aligner_.usual();
  }
  std::vector<Alignment> of(const std::vector<SentencePair>& pairs) override {
    if (!choice_) choice_ = least_doubt(pairs);
    return std::move(aligner_.align(pairs, std::vector{*choice_}).at(0));
  }
  std::string name() const override { return decode::text_of(*choice_); }

 private:
  decode::AttentionChoice least_doubt(const std::vector<SentencePair>& pairs) {
    const std::vector<decode::AttentionChoice> choices = aligner_.all();
    const auto links = aligner_.align(pairs, choices);
    size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < choices.size(); ++i) {
      data::LexicalCounts counts;
      count(counts, translator_.tokenizer(), pairs, links[i]);
      if (const double entropy = counts.entropy(); entropy < least) {
        best = i;
        least = entropy;
      }
    }
    return choices[best];
  }

  decode::Translator translator_;
  decode::Aligner aligner_;
  std::optional<decode::AttentionChoice> choice_;
};

class FileLinker final : public Linker {
 public:
  explicit FileLinker(const ShortlistCommand& command)
      : command_(command), lines_({command.links}, text::InvalidUtf8::fail) {}
  std::vector<Alignment> of(const std::vector<SentencePair>& pairs) override {
    std::vector<Alignment> links;
    for (const auto& [source, target] : pairs) {
      text::Line line;
      if (!lines_.next(line)) refuse("ends behind", number_);
      ++number_;
      const evaluate::WordCounts words{std::ssize(text::words_of(source)),
                                       std::ssize(text::words_of(target))};
      links.push_back(evaluate::read_alignment(line.text, number_, command_.links, &words));
    }
    return links;
  }
  void end() override {
    if (text::Line line; lines_.next(line)) refuse("goes on behind", number_);
  }
  std::string name() const override { return command_.links; }

 private:
  [[noreturn]] void refuse(const char* what, size_t line) const {
    fail("{} {} line {} and {} does not: each pair needs its line of links, blank where it has none",
         command_.links, what, line, command_.source);
  }

  const ShortlistCommand& command_;
  Inputs lines_;
  size_t number_ = 0;
};

std::unique_ptr<Linker> linker_of(const ShortlistCommand& command) {
  if (command.links.empty()) return std::make_unique<AttentionLinker>(command);
  return std::make_unique<FileLinker>(command);
}

struct Made {
  data::LexicalTable table;
  std::string of;  // what it was made of, for the user
};

Made count_text(const ShortlistCommand& command, const text::Tokenizer& tokenizer) {
  Pairs texts(command.source, command.target, text::InvalidUtf8::fail);
  const std::unique_ptr<Linker> linker = linker_of(command);
  data::LexicalCounts counts;
  int64_t lines = 0;
  for (bool more = true; more;) {
    std::vector<SentencePair> pairs;
    for (SentencePair pair; pairs.size() < kPairsATime && (more = texts.next(pair.first, pair.second));)
      pairs.push_back(std::move(pair));
    count(counts, tokenizer, pairs, linker->of(pairs));
    lines += std::ssize(pairs);
  }
  linker->end();
  require(counts.links() > 0, "{} and {} have no linked words: there is nothing to make a table of",
          command.source, command.target);
  return {counts.table(command.best),
          fmt::format("{} links between the pieces of {} pairs ({})", counts.links(), lines, linker->name())};
}

int run(const Typed<ShortlistCommand>& typed) {
  const ShortlistCommand& command = typed.value;
  if (command.table.empty()) {
    if (command.source.empty() || command.target.empty())
      throw UsageError("shortlist needs --source FILE and --target FILE, or --table FILE");
  } else {
    refuse_typed(typed, {"source", "target", "links"}, "is for counting in a text: leave it out, or --table");
  }
  if (!command.table.empty() || !command.links.empty())
    refuse_typed(typed, {"precision", "threads"}, "is for the model's own links: leave it out");
  refuse_one_input_for_many({command.source, command.target, command.links});
  const text::Tokenizer tokenizer = text::Tokenizer::load(command.model);
  Output output(command.output);
  const Made made = command.table.empty()
                        ? count_text(command, tokenizer)
                        : Made{data::pieces_of_words(command.table, tokenizer, command.best), command.table};
  const int64_t left_out =
      data::write_lexical_table(made.table, tokenizer.source_vocabulary(), tokenizer.target_vocabulary(),
                                [&](std::string_view text) { output.write(text); });
  output.commit();
  say(fmt::format("{} lines of {}", std::ssize(made.table.entries) - left_out, made.of));
  if (left_out > 0)
    say(fmt::format("gloss: {} were left out: pieces with white space, or called NULL, fit no line",
                    left_out));
  return 0;
}

}  // namespace

Run add_shortlist(CLI::App& program) {
  CLI::App& app = add_command(
      program, {"shortlist",
                "MODEL --source FILE --target FILE [OPTIONS]",
                "a table of the target pieces that a source piece becomes",
                "Counts in a text which pieces of MODEL translate each other. Each line of the table is\n"
                "target source probability, as Marian's --shortlist reads it.",
                "gloss shortlist models/en-de --source train.en --target train.de --output en-de.lex",
                {}});
  auto typed = std::make_shared<Typed<ShortlistCommand>>();
  app.add_option("MODEL", typed->value.model, "model folder")->required();
  add_options(app, *typed);
  return [typed] { return run(*typed); };
}

}  // namespace gloss::cli
