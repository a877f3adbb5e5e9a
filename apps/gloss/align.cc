// gloss align: which word of a translation comes from which word of its source, by attention.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "choice.h"
#include "command.h"
#include "gloss/decode/aligner.h"
#include "gloss/evaluate/symmetrise.h"
#include "gloss/io/quote.h"
#include "gloss/text/words.h"
#include "load_flags.h"
#include "option_table.h"
#include "streams.h"
#include "translate_flags.h"

namespace gloss::cli {
namespace {

using decode::AlignmentStep;
using decode::AttentionChoice;
using decode::SentencePair;
using evaluate::Alignment;
using evaluate::Symmetrisation;

constexpr size_t kPairsATime = 512;  // results flow, and batches are full

enum class Steps { usual, emitting, reading };

struct AlignCommand {
  std::string model, source, target, output, reverse, tune, layer, head;
  Steps step = Steps::usual;
  Symmetrisation symmetrise = Symmetrisation::grow_diag_final;
  decode::WordAlignmentOptions words;
  int32_t gold_base = 1;
  LoadFlags load;
  int threads = 0;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    using decode::EndSymbol;
    using decode::PunctuationSink;
    using decode::TargetPieces;
    visit(Field("source", "FILE", "text, one segment a line"), self.source);
    visit(Field("target", "FILE", "its translation, line for line"), self.target);
    visit(Field("output", "FILE", "write to a file, whole or not at all, instead of standard output"),
          self.output);
    visit(Field("layer", "N", "layer, from 0; untold the one that aligns best as a rule"), self.layer);
    visit(Field("head", "N|mean", "head, from 0; untold the one that was guided, or the mean"), self.head);
    visit(Field("step", "S", "attention where a word is read or emitted; usual: by model")
              .choices<Steps>(
                  {{Steps::usual, "usual"}, {Steps::emitting, "emitting"}, {Steps::reading, "reading"}}),
          self.step);
    visit(Field("tune", "GOLD", "take the layer, head and step that agree best with a person's links"),
          self.tune);
    visit(Field("gold-base", "N", "number of the first word of a sentence in GOLD").range(0, 1),
          self.gold_base);
    visit(Field("reverse", "MODEL", "model of the other direction, whose links are joined with these"),
          self.reverse);
    visit(Field("symmetrise", "M", "how the links of both directions are joined")
              .choices<Symmetrisation>({{Symmetrisation::intersection, "intersection"},
                                        {Symmetrisation::union_, "union"},
                                        {Symmetrisation::grow_diag, "grow-diag"},
                                        {Symmetrisation::grow_diag_final, "grow-diag-final"},
                                        {Symmetrisation::grow_diag_final_and, "grow-diag-final-and"}}),
          self.symmetrise);
    visit(
        Field("target-pieces", "P", "mean of a word's pieces, the first, or each by itself")
            .choices<TargetPieces>(
                {{TargetPieces::mean, "mean"}, {TargetPieces::first, "first"}, {TargetPieces::each, "each"}}),
        self.words.target_pieces);
    visit(Field("end-symbol", "E", "for a word that looks there: its next best, or no link")
              .choices<EndSymbol>({{EndSymbol::next_best, "next-best"}, {EndSymbol::unlinked, "unlinked"}}),
          self.words.end_symbol);
    visit(Field("punctuation", "P", "the same for marks; word: marks are words like others")
              .choices<PunctuationSink>({{PunctuationSink::next_best, "next-best"},
                                         {PunctuationSink::unlinked, "unlinked"},
                                         {PunctuationSink::word, "word"}}),
          self.words.punctuation);
    visit(Field("minimum", "W", "least share of its attention that links a word").range(0, 1),
          self.words.minimum);
    LoadFlags::fields(self.load, visit);
    visit(Field("threads", "N", "threads to compute with; 0: one a core").range(0, 1024), self.threads);
  }
};

// One model and where in it to look. The reverse one sees pairs, and gives links, turned round.
class Direction {
 public:
  Direction(const std::string& folder, const Typed<AlignCommand>& typed, bool reverse)
      : folder_(folder),
        translator_(typed.value.load.open(folder)),
        aligner_(translator_, typed.value.threads),
        options_(typed.value.words),
        choice_(aligner_.usual()),
        reverse_(reverse) {
    const AlignCommand& command = typed.value;
    const models::Model& model = translator_.model();
    if (typed.has("layer")) {
      const int64_t layers = model.attention_layers(models::AttentionKind::cross);
      const Choice layer =
          parse_choice("layer", command.layer, layers, {},
                       fmt::format("{} has {}", io::shown(folder), counted(layers, "layer")));
      // A guided head is one of its own layer.
      if (layer.number != choice_.layer) choice_ = {layer.number, {}, choice_.step};
    }
    if (typed.has("head")) {
      const int64_t heads = model.attention_heads(models::AttentionKind::cross);
      choice_.head =
          parse_choice("head", command.head, heads, {Which::mean},
                       fmt::format("a layer of {} has {}", io::shown(folder), counted(heads, "head")))
              .one();
    }
    if (command.step != Steps::usual)
      choice_.step = command.step == Steps::emitting ? AlignmentStep::emitting : AlignmentStep::reading;
  }

  // Takes the choice with the lowest AER and says so.
  void tune(const std::vector<SentencePair>& pairs, const std::vector<evaluate::GoldAlignment>& gold) {
    const std::vector<AttentionChoice> choices = aligner_.all();
    const auto all = align(pairs, choices);
    double best = 2;
    for (size_t i = 0; i < choices.size(); ++i) {
      const double aer = evaluate::aer(all[i], gold).aer();
      if (aer >= best) continue;
      best = aer;
      choice_ = choices[i];
    }
    say(fmt::format("{}: {} of {} choices, AER {:.4f}", folder_, decode::text_of(choice_), choices.size(),
                    best));
  }
  std::vector<Alignment> align(const std::vector<SentencePair>& pairs) {
    return std::move(align(pairs, {choice_}).at(0));
  }

 private:
  std::vector<std::vector<Alignment>> align(std::vector<SentencePair> pairs,
                                            const std::vector<AttentionChoice>& choices) {
    if (reverse_) {
      for (SentencePair& pair : pairs) std::swap(pair.first, pair.second);
    }
    auto all = aligner_.align(pairs, choices, options_);
    if (!reverse_) return all;
    for (auto& alignments : all) {
      for (Alignment& alignment : alignments) {
        for (evaluate::Link& link : alignment) std::swap(link.source, link.target);
        alignment = evaluate::in_order(std::move(alignment));
      }
    }
    return all;
  }

  std::string folder_;
  decode::Translator translator_;
  decode::Aligner aligner_;
  decode::WordAlignmentOptions options_;
  AttentionChoice choice_;
  bool reverse_;
};

std::vector<SentencePair> read_pairs(const AlignCommand& command) {
  std::vector<SentencePair> pairs;
  Pairs texts(command.source, command.target, text::InvalidUtf8::fail);
  for (SentencePair pair; texts.next(pair.first, pair.second);) pairs.push_back(std::move(pair));
  return pairs;
}

std::vector<evaluate::GoldAlignment> read_gold(const AlignCommand& command,
                                               const std::vector<SentencePair>& pairs) {
  std::vector<evaluate::WordCounts> counts;
  for (const auto& [source, target] : pairs) {
    counts.push_back({std::ssize(text::words_of(source)), std::ssize(text::words_of(target))});
  }
  return evaluate::read_gold(read_lines(command.tune, text::InvalidUtf8::fail), command.tune,
                             std::ssize(pairs), {command.gold_base, counts});
}

int run(const Typed<AlignCommand>& typed) {
  const AlignCommand& command = typed.value;
  if (command.source.empty() || command.target.empty())
    throw UsageError("align needs --source FILE and --target FILE");
  refuse_one_input_for_many({command.source, command.target, command.tune});
  if (command.reverse.empty())
    refuse_typed(typed, {"symmetrise"}, "joins the links of two models: add --reverse MODEL");
  if (command.tune.empty()) {
    refuse_typed(typed, {"gold-base"}, "counts the words of --tune GOLD: leave it out, or add that");
  } else {
    refuse_typed(typed, {"layer", "head", "step"}, "is what --tune finds: leave out one of them");
  }
  const std::vector<SentencePair> pairs = read_pairs(command);
  Output output(command.output);
  Direction forward(command.model, typed, false);
  std::optional<Direction> backward;
  if (!command.reverse.empty()) backward.emplace(command.reverse, typed, true);
  if (!command.tune.empty()) {
    const auto gold = read_gold(command, pairs);
    forward.tune(pairs, gold);
    if (backward) backward->tune(pairs, gold);
  }
  for (size_t first = 0; first < pairs.size(); first += kPairsATime) {
    const std::vector<SentencePair> some(
        pairs.begin() + static_cast<std::ptrdiff_t>(first),
        pairs.begin() + static_cast<std::ptrdiff_t>(std::min(pairs.size(), first + kPairsATime)));
    const std::vector<Alignment> links = forward.align(some);
    const std::vector<Alignment> others = backward ? backward->align(some) : std::vector<Alignment>();
    for (size_t i = 0; i < links.size(); ++i) {
      const Alignment joined =
          backward ? evaluate::symmetrise(links[i], others[i], command.symmetrise) : links[i];
      output.write(evaluate::moses_line(joined) + "\n");
    }
    output.flush();
  }
  output.commit();
  return 0;
}

}  // namespace

Run add_align(CLI::App& program) {
  CLI::App& app = add_command(
      program,
      {"align",
       "MODEL --source FILE --target FILE [OPTIONS]",
       "word alignments from attention",
       "Forces each translation and links its words with the source words that attention looked at:\n"
       "a line of source-target numbers from 0 for each pair.",
       "gloss align models/en-de --source test.en --target test.de",
       {"source", "target", "output", "layer", "head", "step", "tune", "gold-base", "reverse", "symmetrise",
        "threads"}});
  auto typed = std::make_shared<Typed<AlignCommand>>();
  app.add_option("MODEL", typed->value.model, "model folder")->required();
  add_options(app, *typed);
  return [typed] { return run(*typed); };
}

}  // namespace gloss::cli
