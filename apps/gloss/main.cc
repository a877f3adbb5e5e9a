// The program: `gloss COMMAND ...`. Results go to standard output, everything else to standard error. The
// exit status is 0, 1 when something failed, 2 when the command line is wrong.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "gloss/base/error.h"
#include "gloss/kernels/gemm.h"
#include "gloss/kernels/isa.h"
#include "streams.h"

namespace gloss::cli {
namespace {

constexpr int kFailure = 1, kUsage = 2;

std::string version() {
  return fmt::format("gloss {}\ninstruction set: {}\nmatrix products: {}\n", GLOSS_VERSION,
                     kernels::isa_name(kernels::current_isa()), kernels::gemm_description());
}

class ProgramHelp : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
    std::string out =
        "Usage: gloss COMMAND [OPTIONS]\n"
        "Trains translation models on your own sentence pairs and translates with them.\n\nCommands:\n";
    for (const CLI::App* command : app->get_subcommands({}))
      out += fmt::format("  {:<20} {}\n", command->get_name(), command->get_description());
    out += "\nOptions of every command:\n";
    for (const CLI::Option* option : app->get_options()) {
      out += fmt::format("  {:<20} {}\n",
                         option->get_name() + (option->get_items_expected_max() > 0 ? " NAME" : ""),
                         option->get_description());
    }
    return out + "\nHelp on a command:     gloss COMMAND --help\n";
  }
};

void print(const std::string& text) {
  Output output("");
  output.write(text);
  output.flush();
}

// One line on standard error, whatever a message holds.
int report(std::string message, int status) {
  for (char& c : message) {
    if (c == '\n') c = ' ';
  }
  fmt::print(stderr, "gloss: {}\n", message);
  return status;
}

int run(int argc, char** argv) {
  CLI::App program("", "gloss");
  program.formatter(std::make_shared<ProgramHelp>());
  program.set_help_flag("-h,--help", "show this, or what a command can do");
  std::string isa, gemm, topic;
  bool show_version = false;
  program.add_flag("--version", show_version, "version, instruction set and matrix product in use");
  program.add_option("--isa", isa, "at most this instruction set: ssse3, sse4, avx2, avx512 (or GLOSS_ISA)");
  program.add_option("--gemm", gemm, "who computes matrix products: automatic, own, onednn");
  program.require_subcommand(0, 1);

  const std::vector<std::pair<std::string, Run>> commands = {
      {"train", add_train(program)}, {"translate", add_translate(program)},
      {"score", add_score(program)}, {"evaluate", add_evaluate(program)},
      {"info", add_info(program)},
  };
  CLI::App* help = program.add_subcommand("help", "show this, or the help of a command");
  help->add_option("COMMAND", topic);

  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForAllHelp&) {
    print(program.get_subcommands().at(0)->help("", CLI::AppFormatMode::All));
    return 0;
  } catch (const CLI::CallForHelp&) {
    print(program.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    const auto chosen = program.get_subcommands();
    return report(fmt::format("{}; see gloss {}--help", error.what(),
                              chosen.empty() ? "" : chosen.front()->get_name() + " "),
                  kUsage);
  }
  kernels::limit_isa_from_environment();
  if (!isa.empty()) kernels::limit_isa(kernels::parse_isa(isa));
  if (!gemm.empty()) kernels::set_gemm_backend(kernels::parse_gemm_backend(gemm));
  if (show_version) {
    print(version());
    return 0;
  }
  for (const auto& [name, command] : commands) {
    if (program.got_subcommand(name)) return command();
  }
  if (topic.empty()) {
    print(program.get_formatter()->make_help(&program, "", CLI::AppFormatMode::Normal));
    return 0;
  }
  for (const CLI::App* about : program.get_subcommands({})) {
    if (about->get_name() != topic) continue;
    print(about->help());
    return 0;
  }
  throw UsageError(fmt::format("there is no command '{}'; see gloss --help", topic));
}

}  // namespace
}  // namespace gloss::cli

int main(int argc, char** argv) {
  // Who closes the pipe we write to has seen enough: end as every filter does, whatever our parent ignores.
  std::signal(SIGPIPE, SIG_DFL);
  try {
    return gloss::cli::run(argc, argv);
  } catch (const gloss::UsageError& error) {
    return gloss::cli::report(error.what(), gloss::cli::kUsage);
  } catch (const std::bad_alloc&) {
    return gloss::cli::report("there is not enough memory: try a smaller --batch or shorter lines",
                              gloss::cli::kFailure);
  } catch (const std::exception& error) {
    return gloss::cli::report(error.what(), gloss::cli::kFailure);
  }
}
