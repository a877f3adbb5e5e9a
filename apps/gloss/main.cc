// The program: `gloss COMMAND ...`. Results go to standard output, everything else to standard error. The
// exit status is 0, 1 when something failed, 2 when the command line is wrong.
#include <fmt/format.h>

#include <malloc.h>
#include <CLI/CLI.hpp>
#include <algorithm>

#include <csignal>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "command.h"
#include "gloss/base/error.h"
#include "gloss/io/quote.h"
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

// One line on standard error, whatever a message holds: names of files can hold anything.
int report(std::string message, int status) {
  std::ranges::replace(message, '\n', ' ');
  say("gloss: " + io::printable(message));
  return status;
}

// "--output=" would take the next argument for its value, which may be the user's input.
void refuse_empty_values(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--") return;
    if (!argument.starts_with("--") || argument.find('=') != argument.size() - 1) continue;
    throw UsageError(fmt::format("{} has no value: write one behind it, or leave the option out", argument));
  }
}

// What is wrong with a command line that CLI11 refuses.
std::string complaint(const CLI::ParseError& error, const CLI::App& command) {
  const std::string what = error.what();
  if (what.ends_with("was given a disallowed flag override"))
    return fmt::format("--{} takes no value", what.substr(0, what.find(' ')));
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) {
    const CLI::App* program = &command;
    while (program->get_parent()) program = program->get_parent();
    const std::vector<std::string> rest = program->remaining(true);
    const auto option = std::ranges::find_if(rest, [](const auto& text) { return text.starts_with('-'); });
    if (option != rest.end()) {
      const bool known = command.get_option_no_throw(option->substr(0, option->find('='))) != nullptr;
      return known ? fmt::format("{} belongs behind {}", *option, command.get_name())
                   : fmt::format("there is no option {}", *option);
    }
    if (!command.get_subcommands({}).empty() && !rest.empty())
      return fmt::format("there is no command '{}'", rest.front());
    return fmt::format("'{}' is one argument too many", rest.empty() ? "" : rest.front());
  }
  if (what == "A subcommand is required") {
    const CLI::App* program = command.get_parent() ? command.get_parent() : &command;
    const std::vector<std::string> rest = program->remaining(true);
    const std::string need = fmt::format("{} needs the name of one of its parts", command.get_name());
    if (rest.empty()) return need;
    return fmt::format("{}{} '{}'", need, rest.front().starts_with('-') ? " before" : ", and none is called",
                       rest.front());
  }
  const std::string name = what.substr(0, what.find(':'));
  const CLI::Option* option = command.get_option_no_throw(name);
  if (!option && command.get_parent()) option = command.get_parent()->get_option_no_throw(name);
  if (option && dynamic_cast<const CLI::ArgumentMismatch*>(&error)) {
    const int least = option->get_items_expected_min(), most = option->get_items_expected_max();
    if (most == 0) return fmt::format("{} is given without a value", name);
    if (most == 1 && what.ends_with(" missing"))
      return fmt::format("{} needs a value behind it: {} {}", name, name, option->get_type_name());
    if (most == 1) return fmt::format("{} takes one value, and stands once", name);
    if (least == most)
      return fmt::format("{} takes {} values ({}), and stands once", name, most, option->get_type_name());
    return fmt::format("{} takes at least {} values ({})", name, least, option->get_type_name());
  }
  return what;
}

int run(int argc, char** argv) {
  CLI::App program("", "gloss");
  program.formatter(std::make_shared<ProgramHelp>());
  program.set_help_flag("-h,--help", "show this, or what a command can do");
  std::string isa, gemm;
  std::vector<std::string> topic;  // "lab scaling" is a command too
  bool show_version = false;
  program.add_flag("--version", show_version, "version, instruction set and matrix product in use");
  program.add_option("--isa", isa, "at most this instruction set: ssse3, sse4, avx2, avx512 (or GLOSS_ISA)");
  program.add_option("--gemm", gemm, "who computes matrix products: automatic, own, onednn");
  program.require_subcommand(0, 1);

  const std::vector<std::pair<std::string, Run>> commands = {
      {"train", add_train(program)},
      {"translate", add_translate(program)},
      {"score", add_score(program)},
      {"evaluate", add_evaluate(program)},
      {"info", add_info(program)},
      {"quantize", add_quantize(program)},
      {"attend", add_attend(program)},
      {"align", add_align(program)},
      {"shortlist", add_shortlist(program)},
      {"plot", add_plot(program)},
      {"lab", add_lab(program)},
  };
  CLI::App* help = program.add_subcommand("help", "show this, or the help of a command");
  help->add_option("COMMAND", topic);

  const auto overview = [&] {
    return program.get_formatter()->make_help(&program, "", CLI::AppFormatMode::Normal);
  };
  refuse_empty_values(argc, argv);
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForAllHelp&) {
    print(program.get_subcommands().at(0)->help("", CLI::AppFormatMode::All));
    return 0;
  } catch (const CLI::CallForHelp&) {
    print(help->parsed() ? overview() : program.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    const CLI::App* command = &program;
    std::string name;
    while (!command->get_subcommands().empty()) {
      command = command->get_subcommands().front();
      name += command->get_name() + " ";
    }
    return report(fmt::format("{}; see gloss {}--help", complaint(error, *command), name), kUsage);
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
  const CLI::App* about = topic.empty() ? help : &program;
  for (const std::string& name : topic) {
    const std::vector<const CLI::App*> parts = about->get_subcommands({});
    const auto part = std::ranges::find(parts, name, &CLI::App::get_name);
    if (part == parts.end()) {
      throw UsageError(fmt::format("there is no command '{}'; see gloss {}--help", fmt::join(topic, " "),
                                   about == &program ? "" : topic.front() + " "));
    }
    about = *part;
  }
  print(about == help ? overview() : about->help());
  return 0;
}

}  // namespace
}  // namespace gloss::cli

namespace {

// The C library learns from the first large block that is freed to keep all but the largest among the small
// ones, where what is freed stays ours: 60 MB of a model of OPUS-MT size. A fixed limit gives large blocks
// back at once.
void give_large_blocks_back() {
  constexpr int kLargeBlock = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargeBlock);
}

}  // namespace

int main(int argc, char** argv) {
  give_large_blocks_back();
  // Who closes the pipe we write to has seen enough: end as every filter does, whatever our parent ignores.
  std::signal(SIGPIPE, SIG_DFL);
  // A limit on file sizes then gives an error that can be told, like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return gloss::cli::run(argc, argv);
  } catch (const gloss::UsageError& error) {
    return gloss::cli::report(error.what(), gloss::cli::kUsage);
  } catch (const std::bad_alloc&) {
    return gloss::cli::report(
        "there is not enough memory: try a smaller --batch (of train: --batch-tokens) or shorter lines",
        gloss::cli::kFailure);
  } catch (const std::filesystem::filesystem_error& error) {
    return gloss::cli::report(fmt::format("{} cannot be used ({}): check the path and its permissions",
                                          gloss::io::shown(error.path1()), error.code().message()),
                              gloss::cli::kFailure);
  } catch (const std::exception& error) {
    return gloss::cli::report(error.what(), gloss::cli::kFailure);
  }
}
