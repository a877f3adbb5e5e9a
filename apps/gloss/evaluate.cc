// gloss evaluate: BLEU, chrF, exact matches and perplexity of translations; the error rate of word
// alignments.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "command.h"
#include "gloss/decode/translator.h"
#include "gloss/evaluate/alignment.h"
#include "gloss/evaluate/bleu.h"
#include "gloss/evaluate/chrf.h"
#include "gloss/text/words.h"
#include "load_flags.h"
#include "option_table.h"
#include "streams.h"
#include "translate_flags.h"

namespace gloss::cli {
namespace {

struct EvaluateCommand {
  std::string model, source, hypothesis, output;
  std::vector<std::string> reference;
  std::string alignment, alignment_gold, target;
  int gold_base = 1;
  evaluate::Tokenizer tokenize = evaluate::Tokenizer::v13a;
  bool lowercase = false, json = false, replace_invalid = false;
  LoadFlags load;
  decode::TranslateOptions translate;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    using evaluate::Tokenizer;
    visit(Field("source", "FILE", "text to translate with MODEL"), self.source);
    visit(Field("hypothesis", "FILE", "translations made elsewhere, instead of MODEL and --source"),
          self.hypothesis);
    visit(Field("reference", "FILE...", "what is right, line for line; several are alternatives"),
          self.reference);
    visit(Field("alignment-gold", "FILE", "word links that a person made, sure and possible"),
          self.alignment_gold);
    visit(Field("alignment", "FILE", "word links to score with them, Moses lines 0-0 1-2"), self.alignment);
    visit(Field("gold-base", "N", "the number of a sentence's first word in --alignment-gold").range(0, 1),
          self.gold_base);
    visit(Field("target", "FILE", "with --source the sentences that --alignment links, to check its links"),
          self.target);
    visit(Field("output", "FILE", "write the translations to a file as well"), self.output);
    visit(Field("tokenize", "T", "how BLEU splits words, as sacreBLEU does")
              .choices<Tokenizer>(
                  {{Tokenizer::v13a, "13a"}, {Tokenizer::intl, "intl"}, {Tokenizer::none, "none"}}),
          self.tokenize);
    visit(Field("lowercase", "", "ignore case in BLEU and chrF"), self.lowercase);
    visit(Field("json", "", "one JSON object instead of lines"), self.json);
    LoadFlags::fields(self.load, visit);
    decode::TranslateOptions::fields(self.translate, visit);
    visit(Field("replace-invalid", "", "put U+FFFD in place of bytes that are not UTF-8"),
          self.replace_invalid);
  }
};

// What the model makes of the first reference.
struct Perplexity {
  double value = 0;
  int64_t tokens = 0;
};

Perplexity perplexity(const decode::Translator& translator, const std::vector<std::string>& source,
                      const std::vector<std::string>& reference, int threads) {
  size_t next = 0;
  double total = 0;
  Perplexity result;
  translator.score({[&](std::string& a, std::string& b) {
                     if (next == source.size()) return false;
                     a = source[next];
                     b = reference[next++];
                     return true;
                   }},
                   threads, [&](const decode::ScoredPair& pair) {
                     total += pair.log_probability;
                     result.tokens += static_cast<int64_t>(pair.tokens.size());
                   });
  result.value = std::exp(-total / static_cast<double>(std::max<int64_t>(1, result.tokens)));
  return result;
}

int64_t exact_matches(const std::vector<std::string>& hypotheses, const evaluate::References& references) {
  int64_t count = 0;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    for (const auto& reference : references) {
      if (hypotheses[i] != reference[i]) continue;
      ++count;
      break;
    }
  }
  return count;
}

// "BLEU|nrefs:1|... = 41.02 ...", as sacreBLEU prints it.
std::string signed_line(const std::string& text, const std::string& signature) {
  const size_t name = text.find(' ');
  return fmt::format("{}|{}{}", text.substr(0, name), signature, text.substr(name));
}

void print_results(const EvaluateCommand& command, const std::vector<std::string>& hypotheses,
                   const evaluate::References& references, const std::optional<Perplexity>& model) {
  const evaluate::BleuScore bleu = evaluate::bleu(hypotheses, references,
                                                  {.tokenizer = command.tokenize,
                                                   .lowercase = command.lowercase,
                                                   .smoothing = evaluate::Smoothing::exp,
                                                   .effective_order = false});
  evaluate::ChrfOptions chrf_options;
  chrf_options.lowercase = command.lowercase;
  const evaluate::ChrfScore chrf = evaluate::chrf(hypotheses, references, chrf_options);
  const int64_t exact = exact_matches(hypotheses, references);
  const auto lines = static_cast<int64_t>(hypotheses.size());
  const double share = 100.0 * static_cast<double>(exact) / static_cast<double>(lines);
  Output output("");
  if (command.json) {
    nlohmann::ordered_json json = {{"lines", lines},
                                   {"bleu",
                                    {{"score", bleu.score},
                                     {"signature", bleu.signature()},
                                     {"precisions", bleu.precisions},
                                     {"brevity_penalty", bleu.brevity_penalty},
                                     {"hypothesis_length", bleu.hypothesis_length},
                                     {"reference_length", bleu.reference_length}}},
                                   {"chrf", {{"score", chrf.score}, {"signature", chrf.signature()}}},
                                   {"exact_match", {{"count", exact}, {"percent", share}}}};
    if (model) json["perplexity"] = {{"value", model->value}, {"pieces", model->tokens}};
    output.write(json.dump(2) + "\n");
  } else {
    output.write(signed_line(bleu.text(), bleu.signature()) + "\n");
    output.write(signed_line(chrf.text(), chrf.signature()) + "\n");
    output.write(fmt::format("exact match = {:.2f} % ({} of {} lines)\n", share, exact, lines));
    if (model)
      output.write(fmt::format("perplexity = {:.4f} ({} pieces of the {}reference)\n", model->value,
                               model->tokens, references.size() > 1 ? "first " : ""));
  }
  output.commit();
}

// Throws UsageError, "<why>: leave out --name", for the first option that was typed and is not allowed.
void refuse_others(const Typed<EvaluateCommand>& typed, std::initializer_list<std::string_view> allowed,
                   std::string_view why) {
  for_each_field(typed.value, [&](const Field& field, const auto& value) {
    if (typed.has(std::string_view(field.name())) &&
        std::ranges::find(allowed, field.name()) == allowed.end())
      throw UsageError(fmt::format("{}: leave out {}", why, flag_text(field, value)));
  });
}

// The lines of the texts as numbers of words; empty where no texts are given.
std::vector<evaluate::WordCounts> word_counts(const EvaluateCommand& command, text::InvalidUtf8 invalid) {
  if (command.source.empty()) return {};
  std::vector<evaluate::WordCounts> counts;
  Pairs texts(command.source, command.target, invalid);
  for (std::string source, target; texts.next(source, target);) {
    counts.push_back({std::ssize(text::words_of(source)), std::ssize(text::words_of(target))});
  }
  report_replaced(texts.replaced_lines());
  return counts;
}

int run_alignment(const Typed<EvaluateCommand>& typed) {
  const EvaluateCommand& command = typed.value;
  if (command.alignment_gold.empty() || command.alignment.empty())
    throw UsageError("scoring word links needs both --alignment-gold FILE and --alignment FILE");
  constexpr std::string_view kWhy = "--alignment-gold scores the links of --alignment";
  if (!command.model.empty()) throw UsageError(fmt::format("{}: leave out MODEL", kWhy));
  refuse_others(typed,
                {"alignment-gold", "alignment", "gold-base", "source", "target", "json", "replace-invalid"},
                kWhy);
  if (command.source.empty() != command.target.empty())
    throw UsageError("--source and --target are checked together: give both or none");
  refuse_one_input_for_many({command.alignment_gold, command.alignment, command.source, command.target});

  const auto invalid = command.replace_invalid ? text::InvalidUtf8::replace : text::InvalidUtf8::fail;
  const std::vector<evaluate::WordCounts> counts = word_counts(command, invalid);
  const auto lines = read_lines(command.alignment, invalid);
  require(!lines.empty(), "{} holds no line: there is nothing to evaluate", command.alignment);
  const auto alignments = evaluate::read_alignments(lines, command.alignment, counts);
  const auto gold = evaluate::read_gold(read_lines(command.alignment_gold, invalid), command.alignment_gold,
                                        static_cast<int64_t>(lines.size()), {command.gold_base, counts});
  const evaluate::AerScore score = evaluate::aer(alignments, gold);
  Output output("");
  if (command.json) {
    const nlohmann::ordered_json json = {{"sentences", score.sentences},
                                         {"aer", score.aer()},
                                         {"precision", score.precision()},
                                         {"recall", score.recall()},
                                         {"links", score.links},
                                         {"links_in_sure", score.links_in_sure},
                                         {"links_in_possible", score.links_in_possible},
                                         {"sure", score.sure},
                                         {"possible", score.possible}};
    output.write(json.dump(2) + "\n");
  } else {
    output.write(fmt::format("AER = {:.4f} ({} sentences)\n", score.aer(), score.sentences));
    output.write(fmt::format("precision = {:.4f} ({} of {} links are among the {} possible ones)\n",
                             score.precision(), score.links_in_possible, score.links, score.possible));
    output.write(fmt::format("recall = {:.4f} ({} of the {} sure links were found)\n", score.recall(),
                             score.links_in_sure, score.sure));
  }
  output.commit();
  return 0;
}

int run(Typed<EvaluateCommand>& typed) {
  if (typed.has("alignment-gold") || typed.has("alignment")) return run_alignment(typed);
  refuse_typed(typed, {"gold-base", "target"},
               "is for scoring word links: add --alignment-gold and --alignment");
  EvaluateCommand& command = typed.value;
  const bool translates = command.hypothesis.empty();
  if (command.reference.empty()) throw UsageError("evaluate needs --reference FILE");
  if (translates && (command.model.empty() || command.source.empty()))
    throw UsageError("evaluate needs MODEL and --source FILE to translate, or --hypothesis FILE to score");
  if (!translates && (!command.model.empty() || !command.source.empty() || !command.output.empty()))
    throw UsageError("--hypothesis is scored as it stands: leave out MODEL, --source and --output");
  std::vector<std::string> files = command.reference;
  files.insert(files.end(), {command.source, command.hypothesis});
  refuse_one_input_for_many(files);
  if (!translates) {
    refuse_translating(typed, "--hypothesis is scored as it stands: leave out ");
    refuse_typed(typed, {"precision"}, "plays no part in scoring --hypothesis: leave it out");
  }
  const decode::TranslateOptions& options = command.translate;
  if (!options.sample)
    refuse_typed(typed, {"n-best"}, "changes nothing where the best is scored: set --beam");
  settle_translating(typed, false);

  const auto invalid = command.replace_invalid ? text::InvalidUtf8::replace : text::InvalidUtf8::fail;
  const std::string& file = translates ? command.source : command.hypothesis;
  std::vector<std::string> lines = read_lines(file, invalid);
  require(!lines.empty(), "{} holds no line: there is nothing to evaluate", file);
  evaluate::References references;
  for (const std::string& reference : command.reference) {
    references.push_back(read_lines(reference, invalid));
    require(references.back().size() == lines.size(),
            "{} has {} lines and {} has {}: each line needs its reference", file, lines.size(), reference,
            references.back().size());
  }
  if (!translates) {
    print_results(command, lines, references, std::nullopt);
    return 0;
  }
  std::optional<Output> written;
  if (!command.output.empty()) written.emplace(command.output);
  const decode::Translator translator = command.load.open(command.model);
  std::vector<std::string> hypotheses;
  for (const decode::Translation& translation : translator.translate(lines, options))
    hypotheses.push_back(translation.text());
  if (written) {
    for (const std::string& line : hypotheses) written->write(line + "\n");
    written->commit();
  }
  print_results(command, hypotheses, references,
                perplexity(translator, lines, references.front(), options.threads));
  return 0;
}

}  // namespace

Run add_evaluate(CLI::App& program) {
  CLI::App& app = add_command(
      program,
      {"evaluate",
       "[MODEL] --source FILE | --hypothesis FILE  --reference FILE... [OPTIONS]\n"
       "       gloss evaluate --alignment-gold FILE --alignment FILE [--source FILE --target FILE]",
       "BLEU, chrF, perplexity; errors of word alignments",
       "Translates and scores, or scores what is translated already. BLEU and chrF equal sacreBLEU's.\n"
       "Takes the options of gloss translate that change results, too (--help-all). The second form prints\n"
       "the alignment error rate (Och and Ney 2003).",
       "gloss evaluate models/en-de --source test.en --reference test.de",
       {"source", "hypothesis", "reference", "alignment-gold", "alignment", "gold-base", "target", "output",
        "tokenize", "lowercase", "json", "beam", "length-penalty", "threads", "replace-invalid"}});
  auto typed = std::make_shared<Typed<EvaluateCommand>>();
  app.add_option("MODEL", typed->value.model, "model folder");
  add_options(app, *typed);
  return [typed] { return run(*typed); };
}

}  // namespace gloss::cli
