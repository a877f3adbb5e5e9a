// What the commands of the program share.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gloss::cli {

// What a command says about itself.
struct CommandText {
  std::string_view name;       // behind the command it is part of: "lab scaling"
  std::string_view arguments;  // behind the name in the usage line
  std::string_view summary;    // one line, for the list of commands
  std::string_view details;    // lines below the usage; may be empty
  std::string_view example;    // that works as it stands, given the files it names
  // The options that --help shows; the rest is left to --help-all. Empty: all of them.
  std::vector<std::string_view> shown{};
};

// Adds a command to the program; its help fits a screen.
CLI::App& add_command(CLI::App& program, const CommandText& text);

// What a command does once the command line is parsed; gives the exit status.
using Run = std::function<int()>;

// One a file. Each adds its command and returns what it does.
Run add_train(CLI::App& program);
Run add_translate(CLI::App& program);
Run add_score(CLI::App& program);
Run add_evaluate(CLI::App& program);
Run add_info(CLI::App& program);
Run add_quantize(CLI::App& program);
Run add_attend(CLI::App& program);
Run add_align(CLI::App& program);
Run add_shortlist(CLI::App& program);
Run add_plot(CLI::App& program);
Run add_lab(CLI::App& program);

}  // namespace gloss::cli
