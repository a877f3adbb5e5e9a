// gloss quantize: a model folder with its weights rounded to fewer bits.
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>
#include <optional>

#include "command.h"
#include "gloss/decode/translator.h"
#include "gloss/evaluate/chrf.h"
#include "gloss/io/atomic_file.h"
#include "gloss/io/input_file.h"
#include "gloss/io/json_file.h"
#include "gloss/io/quote.h"
#include "gloss/models/model_folder.h"
#include "option_table.h"
#include "streams.h"

namespace gloss::cli {
namespace {

namespace fs = std::filesystem;
using kernels::Precision;

// What a model folder holds besides the weights and config.json.
constexpr std::array kCompanions{
    "generation_config.json", "source.spm", "target.spm", "vocab.json", "target_vocab.json",
    "tokenizer_config.json",  "gloss.json"};

struct QuantizeCommand {
  std::string model, output;
  Precision precision = Precision::int8;
  std::string source, reference;
  double limit = 1;
  int threads = 0;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    visit(Field("precision", "P", "what the weights are rounded to")
              .choices<Precision>({{Precision::int8, "int8"}, {Precision::bfloat16, "bfloat16"}}),
          self.precision);
    visit(Field("source", "FILE", "text to compare the translations of both on"), self.source);
    visit(Field("reference", "FILE", "its translation, line for line"), self.reference);
    visit(Field("limit", "X", "write nothing where chrF falls by more").range(0, 100), self.limit);
    visit(Field("threads", "N", "threads to translate with; 0: one a core").range(0, 1024), self.threads);
  }
};

void copy_companions(const fs::path& from, const fs::path& to) {
  for (const char* name : kCompanions) {
    std::error_code error;
    if (!io::exists(from / name)) continue;
    fs::copy_file(from / name, to / name, error);
    if (!error) fs::permissions(to / name, fs::perms::owner_write, fs::perm_options::add, error);
    require(!error, "{} cannot be copied: {}", io::shown(from / name), error.message());
  }
}

double chrf_of(const fs::path& folder, const std::vector<std::string>& source,
               const std::vector<std::string>& reference, int threads) {
  const decode::Translator translator(folder);
  decode::TranslateOptions options;
  options.threads = threads;
  std::vector<std::string> hypotheses;
  for (const decode::Translation& one : translator.translate(source, options))
    hypotheses.push_back(one.text());
  return evaluate::chrf(hypotheses, {reference}, {}).score;
}

int run(const Typed<QuantizeCommand>& typed) {
  const QuantizeCommand& command = typed.value;
  if (command.source.empty() != command.reference.empty())
    throw UsageError("--source and --reference belong together: give both, or none to compare nothing");
  if (typed.has("limit") && command.source.empty())
    throw UsageError("--limit is on the chrF of a text: add --source FILE and --reference FILE");
  refuse_one_input_for_many({command.source, command.reference});
  kernels::require_precision(command.precision);
  std::vector<std::string> source, reference;
  if (!command.source.empty()) {
    Pairs pairs(command.source, command.reference, text::InvalidUtf8::fail);
    for (std::string a, b; pairs.next(a, b);) {
      source.push_back(a);
      reference.push_back(b);
    }
    require(!source.empty(), "{} holds no line: there is nothing to compare on", command.source);
  }
  const fs::path model(command.model), output(command.output);
  require(!io::exists(output), "{} exists already: name a folder that does not", io::shown(output));

  io::AtomicFolder folder(output);
  {
    Arena arena;
    const auto numbers = models::load_model(model, arena);
    const auto config = nlohmann::ordered_json(io::read_json(model / "config.json"));
    models::save_rounded_model(folder.path(), *numbers, config, command.precision);
  }
  copy_companions(model, folder.path());
  const auto megabytes = [](const fs::path& path) {
    return static_cast<double>(fs::file_size(path / "model.safetensors")) / 1e6;
  };
  say(fmt::format("{}: {:.1f} MB, {:.1f} MB before", kernels::precision_name(command.precision),
                  megabytes(folder.path()), megabytes(model)));
  if (!source.empty()) {
    const double before = chrf_of(model, source, reference, command.threads),
                 after = chrf_of(folder.path(), source, reference, command.threads);
    say(fmt::format("chrF on {}: {:.2f}, {:.2f} before, a change of {:+.2f}", command.source, after, before,
                    after - before));
    require(before - after <= command.limit,
            "chrF falls by {:.2f}, more than the {:.2f} of --limit: nothing was written; try bfloat16",
            before - after, command.limit);
  }
  folder.commit();
  return 0;
}

}  // namespace

Run add_quantize(CLI::App& program) {
  CLI::App& app = add_command(
      program, {"quantize", "MODEL OUTPUT [OPTIONS]", "round a model's weights to fewer bits",
                "Writes a folder with the weights as int8 or bfloat16: a quarter or half of the size. Every\n"
                "command opens it, and translates in that precision unless --precision says another.",
                "gloss quantize models/en-de models/en-de-int8 --source val.en --reference val.de"});
  auto typed = std::make_shared<Typed<QuantizeCommand>>();
  app.add_option("MODEL", typed->value.model, "model folder")->required();
  app.add_option("OUTPUT", typed->value.output, "folder to make")->required();
  add_options(app, *typed);
  return [typed] { return run(*typed); };
}

}  // namespace gloss::cli
