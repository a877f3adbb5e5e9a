// gloss plot: curves of trainings.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "command.h"
#include "gloss/inspect/training_chart.h"
#include "gloss/io/quote.h"
#include "option_table.h"
#include "picture_output.h"
#include "streams.h"

namespace gloss::cli {
namespace {

using inspect::Metric;

constexpr std::pair<std::string_view, Metric> kMetrics[] = {{"loss", Metric::loss},
                                                            {"perplexity", Metric::perplexity},
                                                            {"bleu", Metric::bleu},
                                                            {"learning-rate", Metric::learning_rate},
                                                            {"speed", Metric::speed}};

struct PlotCommand {
  std::vector<std::string> runs;
  std::string output, metric;
  inspect::Over over = inspect::Over::updates;
  inspect::Theme theme = inspect::Theme::light;
  int64_t smooth = 0;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    using inspect::Over, inspect::Theme;
    visit(Field("output", "FILE", "the picture: .svg, .png or .pdf; without it SVG goes to standard output"),
          self.output);
    visit(Field("metric", "NAME,...",
                "of loss,perplexity,bleu,learning-rate,speed; without it all that have values"),
          self.metric);
    visit(Field("over", "X", "what runs from left to right")
              .choices<Over>({{Over::updates, "updates"}, {Over::time, "time"}}),
          self.over);
    visit(Field("smooth", "N", "draw means of N reports; 1: none, 0: a hundredth of all").range(0, 1000000),
          self.smooth);
    visit(Field("theme", "T", "the page and its colours")
              .choices<Theme>({{Theme::light, "light"}, {Theme::dark, "dark"}}),
          self.theme);
  }
};

// "loss,bleu"
std::vector<Metric> metrics_of(const std::string& names) {
  std::vector<Metric> metrics;
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    const std::string name = names.substr(begin, end - begin);
    const auto* known = std::ranges::find(kMetrics, name, &std::pair<std::string_view, Metric>::first);
    if (known == std::end(kMetrics)) {
      throw UsageError(fmt::format(
          "--metric takes loss, perplexity, bleu, learning-rate and speed, with commas between, not {}",
          io::in_quotes(name)));
    }
    if (std::ranges::find(metrics, known->second) != metrics.end())
      throw UsageError(fmt::format("--metric names {} twice: leave one out", name));
    metrics.push_back(known->second);
    begin = end + 1;
  }
  return metrics;
}

std::vector<inspect::TrainingRun> read_runs(const std::vector<std::string>& paths) {
  std::vector<inspect::TrainingRun> runs;
  int64_t damaged = 0;
  for (const std::string& path : paths) {
    runs.push_back(inspect::read_training_run(path));
    damaged += runs.back().damaged_lines;
  }
  const std::vector<std::string> names = inspect::names_apart({paths.begin(), paths.end()});
  for (size_t i = 0; i < runs.size(); ++i) runs[i].name = names[i];
  if (damaged > 0)
    say(fmt::format("gloss: {} damaged line{} of the logs {} left out", damaged, damaged == 1 ? "" : "s",
                    damaged == 1 ? "was" : "were"));
  return runs;
}

int run(const Typed<PlotCommand>& typed) {
  const PlotCommand& command = typed.value;
  if (command.output.empty() && ::isatty(STDOUT_FILENO) == 1)
    throw UsageError("a picture is nothing to read on a terminal: name a file, --output training.svg");
  for (size_t i = 0; i < command.runs.size(); ++i) {
    if (std::ranges::count(command.runs, command.runs[i]) > 1)
      throw UsageError(fmt::format("{} is named twice: leave one out", command.runs[i]));
  }
  inspect::TrainingChartOptions options{{}, command.over, command.smooth};
  if (typed.has("metric")) options.metrics = metrics_of(command.metric);
  inspect::require_pictures();
  std::optional<inspect::PictureFile> file;
  if (!command.output.empty()) file.emplace(command.output);
  const std::vector<inspect::TrainingRun> runs = read_runs(command.runs);
  const inspect::Chart chart = inspect::training_chart(runs, options);
  const inspect::Picture picture =
      inspect::draw(chart, file ? file->format() : inspect::PictureFormat::svg, command.theme);
  if (file) {
    commit(*file, picture);
    return 0;
  }
  tell_missing_glyphs(picture);
  Output output("");
  output.write(picture.bytes);
  output.commit();
  return 0;
}

}  // namespace

Run add_plot(CLI::App& program) {
  CLI::App& app = add_command(
      program,
      {"plot", "RUN... [OPTIONS]", "curves of trainings: loss, perplexity, BLEU, learning rate, speed",
       "Draws several trainings into one picture, a panel for each metric. RUN is the --output folder of\n"
       "gloss train, finished or not, or a file of lines like its train.jsonl.",
       "gloss plot models/en-de --output training.svg"});
  auto typed = std::make_shared<Typed<PlotCommand>>();
  app.add_option("RUN", typed->value.runs, "folders that gloss train made, or files like their train.jsonl")
      ->required();
  add_options(app, *typed);
  return [typed] { return run(*typed); };
}

}  // namespace gloss::cli
