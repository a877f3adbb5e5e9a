// gloss score: how probable a model finds translations that are there already.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "gloss/decode/translator.h"
#include "load_flags.h"
#include "option_table.h"
#include "streams.h"

namespace gloss::cli {
namespace {

struct ScoreCommand {
  std::string model, source, target, output;
  bool tokens = false, json = false, replace_invalid = false;
  LoadFlags load;
  int threads = 0;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit(Field("source", "FILE", "text, one segment a line"), self.source);
    visit(Field("target", "FILE", "its translation, line for line"), self.target);
    visit(Field("output", "FILE", "write to a file, whole or not at all, instead of standard output"),
          self.output);
    visit(Field("tokens", "", "append each piece with its log-probability"), self.tokens);
    visit(Field("json", "", "one JSON object a pair"), self.json);
    LoadFlags::fields(self.load, visit);
    visit(Field("threads", "N", "threads to compute with; 0: one a core").range(0, 1024), self.threads);
    visit(Field("replace-invalid", "", "put U+FFFD in place of bytes that are not UTF-8"),
          self.replace_invalid);
  }
};

int run(const ScoreCommand& command) {
  if (command.source.empty() || command.target.empty())
    throw UsageError("score needs --source FILE and --target FILE");
  refuse_one_input_for_many({command.source, command.target});
  const auto invalid = command.replace_invalid ? text::InvalidUtf8::replace : text::InvalidUtf8::fail;
  const auto regular = [](const std::string& file) {
    std::error_code error;
    return std::filesystem::is_regular_file(file, error);
  };
  if (regular(command.source) && regular(command.target)) {  // files that can be read twice
    Pairs counted(command.source, command.target, invalid);
    for (std::string source, target; counted.next(source, target);) {
    }
  }
  Pairs pairs(command.source, command.target, invalid);
  Output output(command.output);
  const decode::Translator translator = command.load.open(command.model);
  const text::Vocabulary& vocabulary = translator.tokenizer().target_vocabulary();

  double total = 0;
  int64_t tokens = 0, lines = 0;
  const decode::PairSource source{[&](std::string& a, std::string& b) { return pairs.next(a, b); },
                                  [&] { return pairs.ready(); }};
  translator.score(source, command.threads, [&](const decode::ScoredPair& pair) {
    total += pair.log_probability;
    tokens += static_cast<int64_t>(pair.tokens.size());
    ++lines;
    if (command.json) {
      nlohmann::ordered_json pieces = nlohmann::ordered_json::array();
      for (const int32_t token : pair.tokens) pieces.push_back(vocabulary.piece(token));
      const nlohmann::ordered_json json = {{"line", lines},
                                           {"log_probability", pair.log_probability},
                                           {"pieces", pieces},
                                           {"token_log_probabilities", pair.log_probabilities}};
      output.write(json.dump());
    } else {
      output.write(fmt::format("{:.6f}", pair.log_probability));
      for (size_t i = 0; command.tokens && i < pair.tokens.size(); ++i)
        output.write(fmt::format("\t{} {:.6f}", vocabulary.piece(pair.tokens[i]), pair.log_probabilities[i]));
    }
    output.write("\n");
    if (lines % 64 == 0) output.flush();
  });
  output.commit();
  report_replaced(pairs.replaced_lines());
  if (tokens > 0) {
    say(fmt::format("{} lines, {} pieces, log-probability {:.4f}, perplexity {:.4f}", lines, tokens, total,
                    std::exp(-total / static_cast<double>(tokens))));
  }
  return 0;
}

}  // namespace

Run add_score(CLI::App& program) {
  CLI::App& app = add_command(
      program, {"score", "MODEL --source FILE --target FILE [OPTIONS]", "score given translations",
                "Prints log P(target | source), the sum over the target's pieces, for each pair of lines;\n"
                "the perplexity of all pieces goes to standard error.",
                "gloss score models/en-de --source test.en --target test.de"});
  auto typed = std::make_shared<Typed<ScoreCommand>>();
  app.add_option("MODEL", typed->value.model, "model folder")->required();
  add_options(app, *typed);
  return [typed] { return run(typed->value); };
}

}  // namespace gloss::cli
