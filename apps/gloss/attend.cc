// gloss attend: what attention did between a sentence and its translation, as numbers and as a picture.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "choice.h"
#include "command.h"
#include "gloss/decode/translator.h"
#include "gloss/inspect/attended_json.h"
#include "gloss/inspect/attended_pair.h"
#include "gloss/inspect/attention_picture.h"
#include "gloss/io/json_writer.h"
#include "gloss/io/quote.h"
#include "gloss/text/space.h"
#include "gloss/text/utf8.h"
#include "load_flags.h"
#include "option_table.h"
#include "picture_output.h"
#include "streams.h"
#include "translate_flags.h"

namespace gloss::cli {
namespace {

using models::AttentionKind;

enum class Kinds { all, cross, encoder, decoder };

struct AttendCommand {
  std::string model;
  std::vector<std::string> sentence;  // one argument; more are counted in the complaint
  std::string source, target, output;
  Kinds kind = Kinds::all;
  std::string layer, head;
  std::string tensors;
  inspect::Merge merge = inspect::Merge::none;
  inspect::Theme theme = inspect::Theme::light;
  int64_t pad_to = 0, threads = 0;
  LoadFlags load;
  int beam = 5;
  double length_penalty = 1;
  bool numbers = false;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    using inspect::Merge;
    using inspect::Theme;
    visit(Field("source", "FILE", "sentences, one a line, instead of SENTENCE"), self.source);
    visit(Field("target", "TEXT", "force this translation; with --source the name of a file of them"),
          self.target);
    visit(
        Field("output", "FILE", "draw a picture, FILE.svg, .png or .pdf; FILE.json: write the numbers there"),
        self.output);
    visit(Field("kind", "K", "who looks at whom; a picture shows one, cross unless told")
              .choices<Kinds>({{Kinds::all, "all"},
                               {Kinds::cross, "cross"},
                               {Kinds::encoder, "encoder"},
                               {Kinds::decoder, "decoder"}}),
          self.kind);
    visit(Field("layer", "N|mean|all",
                "which, from 0; untold a picture shows the best aligned layer, JSON all"),
          self.layer);
    visit(Field("head", "N|mean|all", "in a picture: which, from 0; untold the mean; all: side by side"),
          self.head);
    visit(Field("merge", "M", "in a picture: join the pieces of words")
              .choices<Merge>({{Merge::none, "none"}, {Merge::words, "words"}}),
          self.merge);
    visit(Field("pad-to", "N", "in a picture: add masked padding, up to N keys").range(0, 4096), self.pad_to);
    visit(Field("numbers", "", "in a picture: write the weights into the cells"), self.numbers);
    visit(Field("theme", "T", "in a picture: the page and its colours")
              .choices<Theme>({{Theme::light, "light"}, {Theme::dark, "dark"}}),
          self.theme);
    visit(Field("tensors", "LIST",
                "in JSON: of one --kind and --layer q,k,v,scores,weights,heads,concat,output"),
          self.tensors);
    visit(Field("beam", "N", "hypotheses of the search for the translation").range(1, 4096), self.beam);
    visit(Field("length-penalty", "A", "of the search: score = log-probability / length^A").range(-100, 100),
          self.length_penalty);
    LoadFlags::fields(self.load, visit);
    visit(Field("threads", "N", "threads to compute with; 0: one a core").range(0, 1024), self.threads);
  }
};

// "q,k"; an empty name stays one.
std::vector<std::string> split_at_commas(const std::string& list) {
  std::vector<std::string> items;
  for (size_t at = 0; at <= list.size();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    items.push_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return items;
}

constexpr std::string_view kForPictures =
    "is for a picture: add --output with a name that ends in .svg, .png or .pdf";

// What --layer or --head says, of `count` that exist where `there` says.
Choice chosen(const Typed<AttendCommand>& typed, std::string_view option, const std::string& text,
              int64_t count, bool picture, const std::string& there) {
  if (!typed.has(option)) return {};
  if (picture) return parse_choice(option, text, count, {Which::mean, Which::each}, there);
  if (text == "mean") throw UsageError(fmt::format("--{} mean {}", option, kForPictures));
  return parse_choice(option, text, count, {Which::each}, there);
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
    throw UsageError(fmt::format("this model ({}) has no {}: choose --kind cross", model.type(),
                                 inspect::kind_text(kind)));
  }
  return {kind};
}

class Attend {
 public:
  Attend(const Typed<AttendCommand>& typed, bool picture)
      : command_(typed.value),
        translator_(command_.load.open(command_.model)),
        context_(decode::crew(threads(command_), 1).threads_each) {
    const models::Model& model = translator_.model();
    if (typed.has("tensors")) tensors_ = split_at_commas(command_.tensors);
    options_.translate = threads(command_);
    options_.request.kinds = kinds_of(command_, model, picture);
    Choice layer;
    for (const AttentionKind kind : options_.request.kinds) {
      const int64_t layers = model.attention_layers(kind);
      layer =
          chosen(typed, "layer", command_.layer, layers, picture,
                 fmt::format("the model has {} of {}", counted(layers, "layer"), inspect::kind_text(kind)));
    }
    options_.request.layer = layer.one();
    if (picture) settle_picture(typed, layer);
    options_.request.tensors = !tensors_.empty();
    if (options_.request.tensors && (options_.request.kinds.size() != 1 || !options_.request.layer))
      throw UsageError("--tensors shows matrices of one layer: say --kind, and the number of the --layer");
  }

  // One sentence; `line` counts from 1 in a file, 0 on the command line.
  // A blank line of a file has an object of its own, without attention.
  void run(const std::string& sentence, const std::optional<std::string>& target, int64_t line,
           Output& output) {
    std::optional<inspect::AttendedPair> pair;
    if (line == 0 || !(text::is_blank(sentence) || (target && text::is_blank(*target)))) {
      pair = attended(sentence, target, line);
      inspect::check_tensors(*pair, tensors_);
    }
    io::JsonWriter json([&](std::string_view text) { output.write(text); });
    json.begin_object();
    json.key("model");
    json.text(command_.model);  // a folder's name may be any bytes
    json.key("model_type");
    json.text(translator_.model().type());
    if (line > 0) {
      json.key("line");
      json.whole(line);
    }
    if (!pair) {
      json.key("blank");
      json.boolean(true);
    } else {
      if (!pair->forced) {
        json.key("beam");
        json.whole(command_.beam);
      }
      inspect::write_json(*pair, tensors_, json);
    }
    json.end_object();
    json.flush();
    output.write("\n");
  }
  inspect::Picture draw(const std::string& sentence, const std::optional<std::string>& target,
                        inspect::PictureFormat format) {
    const inspect::AttendedPair pair = attended(sentence, target, 0);
    return inspect::draw_attention(pair, format, picture_);
  }

 private:
  void settle_picture(const Typed<AttendCommand>& typed, const Choice& layer) {
    const models::Model& model = translator_.model();
    const AttentionKind kind = options_.request.kinds.at(0);
    const int64_t heads = model.attention_heads(kind);
    const Choice head = chosen(typed, "head", command_.head, heads, true,
                               fmt::format("a layer has {}", counted(heads, "head")));
    picture_.view.head = head.one();
    picture_.each_head = head.which == Which::each;
    // Each head is asked for to see them all: so are the layers then.
    picture_.each_layer = layer.which == Which::each || (layer.which == Which::untold && picture_.each_head);
    if (layer.which == Which::untold && !picture_.each_layer) {
      options_.request.layer =
          kind == AttentionKind::cross ? model.alignment().layer : model.attention_layers(kind) - 1;
    }
    picture_.view.merge = command_.merge;
    picture_.view.pad_to = command_.pad_to;
    picture_.style.theme = command_.theme;
    picture_.style.numbers = command_.numbers;
  }
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
  decode::Translator translator_;
  Context context_;
  inspect::AttendOptions options_;
  inspect::PictureOptions picture_;
};

// By the ending of a name; numbers go to .json and to standard output.
bool names_picture(const std::string& output) {
  if (output.empty() || output == "-" || std::filesystem::path(output).extension() == ".json") return false;
  try {
    inspect::picture_format(output);
  } catch (const UsageError&) {
    throw UsageError(fmt::format(
        "--output must end in .svg, .png or .pdf for a picture or in .json for numbers, not as {} does",
        io::in_quotes(io::shown(output))));
  }
  return true;
}

void refuse_senseless(const Typed<AttendCommand>& typed, bool picture) {
  const AttendCommand& command = typed.value;
  const size_t sentences = command.sentence.size();
  if (sentences == 0 && !typed.has("source"))
    throw UsageError("attend needs a sentence in quotes behind MODEL, or --source FILE with one a line");
  if (sentences > 0 && typed.has("source"))
    throw UsageError("a sentence and --source are given: leave out one of them");
  if (sentences > 1) {
    throw UsageError(fmt::format("the sentence came as {} arguments, {} and {} first: put quotes around it",
                                 sentences, io::in_quotes(command.sentence[0]),
                                 io::in_quotes(command.sentence[1])));
  }
  const auto refuse_bytes = [](std::string_view what, const std::string& given) {
    if (!text::is_utf8(given))
      throw UsageError(fmt::format("{} is not valid UTF-8: {}", what, io::in_quotes(given)));
  };
  if (sentences == 1) refuse_bytes("the sentence", command.sentence[0]);
  if (!typed.has("source")) refuse_bytes("--target", command.target);
  if (picture) {
    refuse_typed(typed, {"tensors"}, "is for JSON, and --output names a picture: leave out one of them");
    if (typed.has("source"))
      throw UsageError("a picture shows one sentence: give it on the command line instead of --source");
    if (command.kind == Kinds::all && typed.has("kind"))
      throw UsageError("a picture shows one kind: --kind cross, encoder or decoder");
  } else {
    refuse_typed(typed, {"head", "merge", "pad-to", "numbers", "theme"}, kForPictures);
  }
  if (typed.has("target"))
    refuse_typed(typed, {"beam"}, "plays no part where the translation is given: leave out that or --target");
}

int run(const Typed<AttendCommand>& typed) {
  const AttendCommand& command = typed.value;
  const bool picture = names_picture(command.output);
  refuse_senseless(typed, picture);
  const bool forced = typed.has("target");
  const auto given = [&](const std::string& target) { return forced ? std::optional(target) : std::nullopt; };
  if (picture) {
    inspect::PictureFile file(command.output);
    commit(file, Attend(typed, true).draw(command.sentence[0], given(command.target), file.format()));
    return 0;
  }
  Attend attend(typed, false);
  Output output(command.output);
  if (!typed.has("source")) {
    attend.run(command.sentence[0], given(command.target), 0, output);
  } else {
    refuse_one_input_for_many({command.source, command.target});
    std::optional<Inputs> sources;
    std::optional<Pairs> pairs;
    if (forced) {
      pairs.emplace(command.source, command.target, text::InvalidUtf8::fail);
    } else {
      sources.emplace(std::vector<std::string>{command.source}, text::InvalidUtf8::fail);
    }
    text::Line line;
    std::string target;
    for (int64_t number = 1; pairs ? pairs->next(line.text, target) : sources->next(line); ++number) {
      attend.run(line.text, given(target), number, output);
      output.flush();
    }
  }
  output.commit();
  return 0;
}

}  // namespace

Run add_attend(CLI::App& program) {
  CLI::App& app = add_command(
      program,
      {"attend", "MODEL \"SENTENCE\" [OPTIONS]", "what attention looked at, in numbers or a picture",
       "Translates a sentence, or takes the translation given, and shows which target piece looked at\n"
       "which source piece: JSON on standard output, or a picture.",
       "gloss attend models/en-de \"a man sleeps .\" --output attention.svg"});
  auto typed = std::make_shared<Typed<AttendCommand>>();
  app.add_option("MODEL", typed->value.model, "model folder")->required();
  app.add_option("SENTENCE", typed->value.sentence, "text to translate, in quotes");
  add_options(app, *typed);
  return [typed] { return run(*typed); };
}

}  // namespace gloss::cli
