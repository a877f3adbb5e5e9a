#include "command.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

namespace gloss::cli {
namespace {

constexpr size_t kNames = 28;  // width of the column of names

// A long list of choices leaves no room beside it.
std::string line_of(std::string_view name, std::string_view help) {
  if (name.size() <= kNames) return fmt::format("  {:<{}}  {}\n", name, kNames, help);
  return fmt::format("  {}\n  {:<{}}  {}\n", name, "", kNames, help);
}

class CommandHelp : public CLI::FormatterBase {
 public:
  explicit CommandHelp(const CommandText& text)
      : usage_(fmt::format("Usage: gloss {} {}", text.name, text.arguments)),
        details_(text.details.empty() ? text.summary : text.details),
        example_(text.example) {
    for (const std::string_view name : text.shown) shown_.emplace(name);
  }

  std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode mode) const override {
    const bool all = shown_.empty() || mode == CLI::AppFormatMode::All;
    std::string out = usage_ + "\n" + details_ + "\n";
    for (const CLI::App* part : app->get_subcommands({}))
      out += cli::line_of(part->get_name(), part->get_description());
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_positional()) out += cli::line_of(option->get_name(), option->get_description());
    }
    for (const std::string& group : app->get_groups()) {
      if (group.empty()) continue;
      std::string options;
      for (const CLI::Option* option : app->get_options()) {
        if (option->get_group() == group && is_shown(*app, *option, all)) options += line_of(*option);
      }
      if (all && app->get_groups().size() > 2 && !options.empty()) out += fmt::format("{}:\n", group);
      out += options;
    }
    if (!all) out += cli::line_of("--help-all", "every option there is");
    if (!example_.empty()) out += fmt::format("Example: {}\n", example_);
    return out;
  }

 private:
  bool is_shown(const CLI::App& app, const CLI::Option& option, bool all) const {
    if (option.get_positional() || &option == app.get_help_ptr() || &option == app.get_help_all_ptr())
      return false;
    return all || shown_.contains(option.get_name().substr(2));
  }

  static std::string line_of(const CLI::Option& option) {
    std::string name = option.get_name(), help = option.get_description();
    if (!option.get_type_name().empty() && option.get_type_size() != 0) name += " " + option.get_type_name();
    if (const std::string value = option.get_default_str(); !value.empty())
      help += fmt::format(" (default {})", value);
    return cli::line_of(name, help);
  }

  std::string usage_, details_, example_;
  std::set<std::string, std::less<>> shown_;
};

}  // namespace

CLI::App& add_command(CLI::App& program, const CommandText& text) {
  const std::string_view own = text.name.substr(text.name.rfind(' ') + 1);
  CLI::App* command = program.add_subcommand(std::string(own), std::string(text.summary));
  command->formatter(std::make_shared<CommandHelp>(text));
  command->set_help_flag("-h,--help", "");
  command->set_help_all_flag("--help-all", "");
  command->fallthrough();  // options of the program may stand behind the command
  return *command;
}

}  // namespace gloss::cli
