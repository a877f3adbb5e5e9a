// gloss translate: text in, text out, line for line.
#include <fmt/format.h>

#include <deque>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "command.h"
#include "gloss/decode/translator.h"
#include "load_flags.h"
#include "option_table.h"
#include "streams.h"
#include "translate_flags.h"

namespace gloss::cli {
namespace {

struct TranslateCommand {
  std::string model;
  std::vector<std::string> inputs;
  std::string output;
  bool scores = false, json = false, replace_invalid = false;
  LoadFlags load;
  decode::TranslateOptions translate;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit(Field("output", "FILE", "write to a file, whole or not at all, instead of standard output"),
          self.output);
    visit(Field("scores", "", "append a tab and the score to each translation"), self.scores);
    visit(Field("json", "", "print one JSON object a line, with scores and pieces"), self.json);
    LoadFlags::fields(self.load, visit);
    decode::TranslateOptions::fields(self.translate, visit);
    visit(Field("replace-invalid", "", "put U+FFFD in place of bytes that are not UTF-8"),
          self.replace_invalid);
  }
};

nlohmann::ordered_json pieces_of(const text::Vocabulary& vocabulary, const std::vector<int32_t>& ids) {
  nlohmann::ordered_json pieces = nlohmann::ordered_json::array();
  for (const int32_t id : ids) pieces.push_back(vocabulary.piece(id));
  return pieces;
}

std::string json_text(const decode::Translator& translator, const decode::Translation& translation) {
  nlohmann::ordered_json candidates = nlohmann::ordered_json::array();
  for (const decode::Candidate& one : translation.candidates) {
    candidates.push_back({{"text", one.text},
                          {"score", one.score},
                          {"log_probability", one.log_probability},
                          {"pieces", pieces_of(translator.tokenizer().target_vocabulary(), one.tokens)},
                          {"token_log_probabilities", one.token_log_probabilities},
                          {"finished", one.finished}});
  }
  const nlohmann::ordered_json json = {
      {"line", translation.line + 1},
      {"source", translation.source},
      {"source_pieces", pieces_of(translator.tokenizer().source_vocabulary(), translation.source_tokens)},
      {"translation", translation.text()},
      {"translations", candidates},
      {"key_value_rows", translation.key_value_rows}};
  return json.dump();
}

int run(Typed<TranslateCommand>& typed) {
  TranslateCommand& command = typed.value;
  const decode::TranslateOptions& options = command.translate;
  settle_translating(typed, command.scores || command.json);

  Inputs inputs(command.inputs,
                command.replace_invalid ? text::InvalidUtf8::replace : text::InvalidUtf8::fail);
  Output output(command.output);
  const decode::Translator translator = command.load.open(command.model);

  // Endings of the lines that are on their way, in order. Read by the reader, written by whoever delivers.
  std::mutex mutex;
  std::deque<std::string> endings;
  text::Line line;
  const decode::LineSource source{[&](std::string& text) {
                                    if (!inputs.next(line)) return false;
                                    text = std::move(line.text);
                                    const std::lock_guard lock(mutex);
                                    endings.emplace_back(line.ending);
                                    return true;
                                  },
                                  [&] { return inputs.ready(); }};
  bool open_line = false;  // the last line of a file had no newline: the next one still begins a line
  const auto deliver = [&](const decode::Translation& translation) {
    std::string ending;
    {
      const std::lock_guard lock(mutex);
      ending = std::move(endings.front());
      endings.pop_front();
    }
    if (open_line) output.write("\n");
    open_line = !ending.ends_with('\n');
    if (command.json) {
      output.write(json_text(translator, translation));
      output.write("\n");
      open_line = false;
    } else if (options.search.n_best > 1) {
      const auto& all = translation.candidates;
      for (size_t i = 0; i < all.size(); ++i) {
        output.write(fmt::format("{} ||| {} ||| {}", translation.line, all[i].text, all[i].score));
        output.write(i + 1 < all.size() && open_line ? "\n" : ending);
      }
    } else {
      output.write(translation.text());
      if (command.scores) output.write(fmt::format("\t{}", translation.candidates.front().score));
      output.write(ending);
    }
    output.flush();
  };
  translator.translate(source, options, deliver);
  output.commit();
  report_replaced(inputs.replaced_lines());
  return 0;
}

}  // namespace

Run add_translate(CLI::App& program) {
  CLI::App& app =
      add_command(program, {"translate",
                            "MODEL [INPUT...] [OPTIONS]",
                            "translate text, line for line",
                            "Translates files, or standard input, line for line.",
                            "gloss translate models/en-de < test.en > test.de",
                            {"output", "scores", "json", "beam", "n-best", "length-penalty", "patience",
                             "max-length", "no-repeat-ngram", "sample", "precision", "shortlist", "batch",
                             "threads", "workers", "split-sentences", "no-copy-unknown", "replace-invalid"}});
  auto typed = std::make_shared<Typed<TranslateCommand>>();
  app.add_option("MODEL", typed->value.model, "model folder")->required();
  app.add_option("INPUT", typed->value.inputs, "text files, one after another; none: standard input");
  add_options(app, *typed);
  return [typed] { return run(*typed); };
}

}  // namespace gloss::cli
