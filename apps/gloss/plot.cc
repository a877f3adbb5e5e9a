// gloss plot: curves of trainings.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "command.h"
#include "gloss/inspect/training_chart.h"
#include "option_table.h"
#include "streams.h"

namespace gloss::cli {
namespace {

using inspect::Metric;

constexpr std::pair<const char*, Metric> kMetrics[] = {{"loss", Metric::loss},
                                                       {"perplexity", Metric::perplexity},
                                                       {"bleu", Metric::bleu},
                                                       {"learning-rate", Metric::learning_rate},
                                                       {"speed", Metric::speed}};

struct PlotCommand {
  std::vector<std::string> runs, metric;
  std::string output;
  inspect::Over over = inspect::Over::updates;
  inspect::Theme theme = inspect::Theme::light;
  int64_t smooth = 0;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    using inspect::Over, inspect::Theme;
    visit(Field("output", "FILE", "the picture: .svg, .png or .pdf; without it SVG goes to standard output"),
          self.output);
    visit(
        Field("metric", "NAME...", "loss, perplexity, bleu, learning-rate, speed; else all that have values")
            .one_of({"loss", "perplexity", "bleu", "learning-rate", "speed"}),
        self.metric);
    visit(Field("over", "X", "from left to right")
              .choices<Over>({{Over::updates, "updates"}, {Over::time, "time"}}),
          self.over);
    visit(Field("smooth", "N", "means of N reports in a row; the reports themselves stay, pale")
              .range(1, 100000),
          self.smooth);
    visit(Field("theme", "T", "the page").choices<Theme>({{Theme::light, "light"}, {Theme::dark, "dark"}}),
          self.theme);
  }
};

std::vector<Metric> metrics_of(const std::vector<std::string>& names) {
  std::vector<Metric> metrics;
  for (const std::string& name : names)
    metrics.push_back(std::ranges::find(kMetrics, name, &std::pair<const char*, Metric>::first)->second);
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

int run(const PlotCommand& command) {
  if (command.output.empty() && ::isatty(STDOUT_FILENO) == 1)
    throw UsageError("a picture is nothing to read on a terminal: name a file, --output training.svg");
  for (size_t i = 0; i < command.runs.size(); ++i) {
    if (std::ranges::count(command.runs, command.runs[i]) > 1)
      throw UsageError(fmt::format("{} is named twice", command.runs[i]));
  }
  inspect::require_pictures();
  std::optional<inspect::PictureFile> file;
  if (!command.output.empty()) file.emplace(command.output);
  const std::vector<inspect::TrainingRun> runs = read_runs(command.runs);
  const inspect::Chart chart =
      inspect::training_chart(runs, {metrics_of(command.metric), command.over, command.smooth});
  const inspect::Picture picture =
      inspect::draw(chart, file ? file->format() : inspect::PictureFormat::svg, command.theme);
  if (const std::string missing = inspect::missing_glyphs_text(picture.missing_glyphs); !missing.empty())
    say("gloss: " + missing);
  if (file) {
    file->commit(picture);
    return 0;
  }
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
  app.add_option("RUN", typed->value.runs, "folders of gloss train")->required();
  add_options(app, *typed);
  return [typed] { return run(typed->value); };
}

}  // namespace gloss::cli
