// gloss lab: statements of the theory of attention, each shown in numbers and a figure, and checked.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "gloss/inspect/picture.h"
#include "gloss/lab/experiments.h"
#include "option_table.h"
#include "picture_output.h"
#include "streams.h"

namespace gloss::cli {
namespace {

using lab::Ingredient;
using lab::Report;

// What every experiment can be told besides its own sizes and seeds.
template <class Experiment>
struct LabCommand {
  typename Experiment::Options own;
  bool broken = false;
  std::string output;
  inspect::Theme theme = inspect::Theme::light;

  template <class Self, class Visitor>
  static void fields(Self& self, Visitor&& visit) {
    using inspect::Theme;
    Experiment::Options::fields(self.own, visit);
    visit(Field("break", "", std::string("take away ") + Experiment::kRemoves), self.broken);
    visit(Field("output", "FILE", "draw the figure, FILE.svg, .png or .pdf"), self.output);
    visit(Field("theme", "T", "the figure's page and colours")
              .template choices<Theme>({{Theme::light, "light"}, {Theme::dark, "dark"}}),
          self.theme);
  }
};

template <class Experiment>
int run(const Typed<LabCommand<Experiment>>& typed) {
  const auto& command = typed.value;
  for (const char* name : {"theme", "figure"}) {
    if (command.output.empty() && typed.has(name))
      throw UsageError(fmt::format("--{} is for the figure: add --output FILE", name));
  }
  std::optional<inspect::PictureFile> picture;
  if (!command.output.empty()) picture.emplace(command.output);
  const Report report = Experiment::run(command.own, command.broken ? Ingredient::removed : Ingredient::kept);
  if (picture) {
    if (!report.figure)
      throw UsageError(fmt::format("{} has no figure: leave out --output", Experiment::kName));
    commit(*picture, report.figure(picture->format(), command.theme));
  }
  Output output("");
  output.write(report.text());
  output.commit();
  return report.holds() ? 0 : 1;
}

template <class Experiment>
void add_experiment(CLI::App& lab, std::vector<std::pair<const CLI::App*, Run>>& runs) {
  const std::string name = std::string("lab ") + Experiment::kName;
  CLI::App& app = add_command(lab, {name, "[OPTIONS]", Experiment::kSummary,
                                    "Prints what it saw, states its claims and checks them; exit status 1 "
                                    "where one fails, as with --break.",
                                    fmt::format("gloss {0} --output {1}.svg", name, Experiment::kName)});
  auto typed = std::make_shared<Typed<LabCommand<Experiment>>>();
  add_options(app, *typed);
  runs.emplace_back(&app, [typed] { return run<Experiment>(*typed); });
}

}  // namespace

Run add_lab(CLI::App& program) {
  CLI::App& app =
      add_command(program, {"lab", "EXPERIMENT [OPTIONS]", "the theory of attention, tried out",
                            "Each experiment states claims, shows them in numbers and checks them.",
                            "gloss lab scaling --output scaling.svg"});
  app.require_subcommand(1);
  auto runs = std::make_shared<std::vector<std::pair<const CLI::App*, Run>>>();
  lab::for_each_experiment([&]<class Experiment>() { add_experiment<Experiment>(app, *runs); });
  return [runs] {
    for (const auto& [experiment, run] : *runs) {
      if (experiment->parsed()) return run();
    }
    return 1;
  };
}

}  // namespace gloss::cli
