// gloss attend: what attention did between a sentence and its translation, as numbers and as a picture.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "gloss/decode/translator.h"
#include "gloss/inspect/attended_pair.h"
#include "gloss/inspect/attention_picture.h"
#include "option_table.h"
#include "streams.h"
#include "translate_flags.h"

namespace gloss::cli {
namespace {

using models::AttentionKind;

enum class Kinds { all, cross, encoder, decoder };

struct AttendCommand {
  std::string model, sentence, source, target, output;
  Kinds kind = Kinds::all;
  std::string layer, head;
  std::string tensors;
  inspect::Merge merge = inspect::Merge::none;
  inspect::Theme theme = inspect::Theme::light;
  int64_t pad_to = 0, threads = 0;
  int beam = 5;
  double length_penalty = 1;
  bool numbers = false;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    using inspect::Merge;
    using inspect::Theme;
    visit(Field("source", "FILE", "sentences, one a line, instead of the one on the command line"),
          self.source);
    visit(Field("target", "TEXT", "force this translation; with --source a file of them"), self.target);
    visit(Field("output", "FILE", "a picture, by its ending svg, png or pdf; or JSON, ending in json"),
          self.output);
    visit(Field("kind", "K", "cross-attention or self-attention; a picture shows one (cross)")
              .choices<Kinds>({{Kinds::all, "all"},
                               {Kinds::cross, "cross"},
                               {Kinds::encoder, "encoder"},
                               {Kinds::decoder, "decoder"}}),
          self.kind);
    visit(Field("layer", "N", "from 0, or all; a picture has the one that aligns words best"), self.layer);
    visit(Field("head", "N", "of a picture: from 0, mean, or all in a grid (mean)"), self.head);
    visit(Field("merge", "M", "of a picture: pieces, or the words they make")
              .choices<Merge>({{Merge::none, "none"}, {Merge::words, "words"}}),
          self.merge);
    visit(Field("pad-to", "N", "of a picture: show padded keys up to N, masked").range(0, 4096), self.pad_to);
    visit(Field("numbers", "", "of a picture: weights as numbers in the cells"), self.numbers);
    visit(
        Field("theme", "T", "of a picture").choices<Theme>({{Theme::light, "light"}, {Theme::dark, "dark"}}),
        self.theme);
    visit(Field("tensors", "LIST", "add matrices of --layer: q,k,v,scores,weights,heads,concat,output"),
          self.tensors);
    visit(Field("beam", "N", "of the search for the translation").range(1, 4096), self.beam);
    visit(Field("length-penalty", "A", "score = log-probability / length^A").range(-100, 100),
          self.length_penalty);
    visit(Field("threads", "N", "0: one a core").range(0, 1024), self.threads);
  }
};

std::vector<std::string> split_at_commas(const std::string& list) {
  std::vector<std::string> items;
  for (size_t at = 0; at <= list.size() && !list.empty();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    if (comma > at) items.push_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return items;
}

// "all" and "" are nothing in particular; else a whole number from 0 to below `count` of what `there` says.
std::optional<int64_t> chosen(const char* option, const std::string& text, int64_t count,
                              const std::string& there) {
  if (text.empty() || text == "all" || text == "mean") return std::nullopt;
  const bool digits = text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
  const int64_t number = digits ? std::stoll(text) : -1;
  if (number < 0 || number >= count) {
    throw UsageError(
        count > 0 ? fmt::format("{} must be from 0 to {}, not '{}': {}", option, count - 1, text, there)
                  : fmt::format("{} {} does not exist: {}", option, text, there));
  }
  return number;
}

// The kinds that are asked for and that the model has.
std::vector<AttentionKind> kinds_of(const AttendCommand& command, const models::Model& model, bool picture) {
  const auto has = [&](AttentionKind kind) { return model.attention_layers(kind) > 0; };
  if (command.kind == Kinds::all) {
    if (picture) return {AttentionKind::cross};
    std::vector<AttentionKind> kinds;
    for (const AttentionKind kind : {AttentionKind::cross, AttentionKind::encoder, AttentionKind::decoder}) {
      if (has(kind)) kinds.push_back(kind);
    }
    return kinds;
  }
  const AttentionKind kind = command.kind == Kinds::cross     ? AttentionKind::cross
                             : command.kind == Kinds::encoder ? AttentionKind::encoder
                                                              : AttentionKind::decoder;
  if (!has(kind)) {
    throw UsageError(fmt::format("this model ({}) has no {} attention: choose --kind cross", model.type(),
                                 inspect::kind_name(kind)));
  }
  return {kind};
}

class Attend {
 public:
  Attend(const AttendCommand& command, bool picture)
      : command_(command),
        tensors_(split_at_commas(command.tensors)),
        picture_(picture),
        translator_(command.model),
        context_(decode::crew(threads(command), 1).threads_each) {
    const models::Model& model = translator_.model();
    options_.translate = threads(command);
    options_.request.kinds = kinds_of(command, model, picture_);
    const AttentionKind first = options_.request.kinds.at(0);
    const int64_t layers = model.attention_layers(first);
    options_.request.layer =
        chosen("--layer", command.layer, layers,
               fmt::format("the model has {} layers of {} attention", layers, inspect::kind_name(first)));
    if (picture_ && command.layer.empty() && command.head != "all")
      options_.request.layer = first == AttentionKind::cross ? model.alignment_layer() : layers - 1;
    options_.request.tensors = !tensors_.empty();
    if (options_.request.tensors && (options_.request.kinds.size() != 1 || !options_.request.layer))
      throw UsageError("--tensors shows the matrices of one layer: say --kind and --layer");
  }

  // One sentence; `line` counts from 1 in a file, 0 on the command line.
  void run(const std::string& sentence, const std::optional<std::string>& target, int64_t line,
           Output& output) {
    const inspect::AttendedPair pair = attended(sentence, target, line);
    nlohmann::ordered_json json = {{"model", command_.model}, {"model_type", translator_.model().type()}};
    if (line > 0) json["line"] = line;
    if (!pair.forced) json["beam"] = command_.beam;
    json.update(inspect::to_json(pair, tensors_));
    output.write(json.dump());
    output.write("\n");
  }
  inspect::Picture draw(const std::string& sentence, const std::optional<std::string>& target,
                        inspect::PictureFormat format) {
    const inspect::AttendedPair pair = attended(sentence, target, 0);
    inspect::PictureOptions picture;
    picture.view.merge = command_.merge;
    picture.view.pad_to = command_.pad_to;
    picture.all_heads = command_.head == "all";
    picture.view.head = chosen("--head", command_.head, pair.maps.at(0).heads,
                               fmt::format("a layer has {} heads", pair.maps.at(0).heads));
    picture.style.theme = command_.theme;
    picture.style.numbers = command_.numbers;
    return inspect::draw_attention(pair, format, picture);
  }

 private:
  static decode::TranslateOptions threads(const AttendCommand& command) {
    decode::TranslateOptions options;
    options.search.beam = command.beam;
    options.search.length_penalty = command.length_penalty;
    options.threads = static_cast<int>(command.threads);
    options.workers = 1;
    return options;
  }
  inspect::AttendedPair attended(const std::string& sentence, const std::optional<std::string>& target,
                                 int64_t line) {
    try {
      return inspect::attend(translator_, context_, sentence, target, options_);
    } catch (const UsageError&) {
      throw;
    } catch (const Error& error) {
      if (line == 0) throw;
      fail("line {}: {}", line, error.what());
    }
  }

  const AttendCommand& command_;
  std::vector<std::string> tensors_;
  bool picture_;
  decode::Translator translator_;
  Context context_;
  inspect::AttendOptions options_;
};

void refuse_senseless(const Typed<AttendCommand>& typed, bool picture) {
  const AttendCommand& command = typed.value;
  if (command.source.empty() == command.sentence.empty())
    throw UsageError("attend needs a sentence, or --source FILE with sentences: give one of them");
  if (picture) {
    refuse_typed(typed, {"tensors"}, "is for JSON, and --output names a picture: leave out one of them");
    if (!command.source.empty())
      throw UsageError("a picture shows one sentence: give it on the command line instead of --source");
    if (command.kind == Kinds::all && typed.has("kind"))
      throw UsageError("a picture shows one kind: --kind cross, encoder or decoder");
  } else {
    refuse_typed(typed, {"head", "merge", "pad-to", "numbers", "theme"},
                 "is for a picture: add --output with a name that ends in .svg, .png or .pdf");
  }
  if (!command.target.empty())
    refuse_typed(typed, {"beam"}, "plays no part where the translation is given: leave out that or --target");
}

int run(const Typed<AttendCommand>& typed) {
  const AttendCommand& command = typed.value;
  // A name that ends in .json or in nothing known is JSON's only where no picture can be meant.
  const bool picture = !command.output.empty() && command.output != "-" &&
                       std::filesystem::path(command.output).extension() != ".json";
  refuse_senseless(typed, picture);
  const auto target = typed.has("target") ? std::optional(command.target) : std::nullopt;
  if (picture) {
    inspect::PictureFile file(command.output);
    const inspect::Picture drawn = Attend(command, true).draw(command.sentence, target, file.format());
    file.commit(drawn);
    if (drawn.missing_glyphs > 0) say(inspect::missing_glyphs_text(drawn.missing_glyphs));
    return 0;
  }
  Attend attend(command, false);
  Output output(command.output);
  if (command.source.empty()) {
    attend.run(command.sentence, target, 0, output);
  } else {
    refuse_one_input_for_many({command.source, command.target});
    Inputs sources({command.source}, text::InvalidUtf8::fail);
    std::optional<Inputs> targets;
    if (!command.target.empty())
      targets.emplace(std::vector<std::string>{command.target}, text::InvalidUtf8::fail);
    int64_t line = 0;
    for (text::Line source, translation; sources.next(source);) {
      ++line;
      if (targets && !targets->next(translation))
        fail("{} ends before line {} of {}: each line needs its translation", command.target, line,
             command.source);
      attend.run(source.text, targets ? std::optional(translation.text) : std::nullopt, line, output);
      output.flush();
    }
    text::Line more;
    if (targets && targets->next(more))
      fail("{} has more than the {} lines of {}: each line needs its translation", command.target, line,
           command.source);
  }
  output.commit();
  return 0;
}

}  // namespace

Run add_attend(CLI::App& program) {
  CLI::App& app = add_command(
      program,
      {"attend", "MODEL SENTENCE [OPTIONS]", "what attention looked at, in numbers or a picture",
       "Translates a sentence, or takes the translation given, and shows which target piece looked at\n"
       "which source piece: JSON on standard output, or a picture.",
       "gloss attend models/en-de \"a man sleeps .\" --output attention.svg"});
  auto typed = std::make_shared<Typed<AttendCommand>>();
  app.add_option("MODEL", typed->value.model, "model folder")->required();
  app.add_option("SENTENCE", typed->value.sentence, "text to translate");
  add_options(app, *typed);
  return [typed] { return run(*typed); };
}

}  // namespace gloss::cli
