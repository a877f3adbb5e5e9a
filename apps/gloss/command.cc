#include "command.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

namespace gloss::cli {
namespace {

constexpr size_t kNames = 30;  // width of the column of names, where they fit
constexpr size_t kWidth = 100;

// One line for options that belong together: an option without a help text shares the line before it.
struct Row {
  std::string names, help, defaults;
  bool shown = false;
};

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
      out += text_of({part->get_name(), part->get_description(), "", true});
    for (const std::string& group : app->get_groups()) {
      if (group.empty()) continue;
      const std::vector<Row> rows = rows_of(app, group);
      if (all && app->get_groups().size() > 2) out += fmt::format("{}:\n", group);
      for (const Row& row : rows) {
        if (all || row.shown) out += text_of(row);
      }
    }
    if (!all) out += text_of({"--help-all", "every option there is", "", true});
    if (!example_.empty()) out += fmt::format("Example: {}\n", example_);
    return out;
  }

 private:
  std::vector<Row> rows_of(const CLI::App* app, const std::string& group) const {
    std::vector<Row> rows;
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_group() != group || option->get_positional() || option == app->get_help_ptr() ||
          option == app->get_help_all_ptr())
        continue;
      std::string name = option->get_name();
      const bool shown = shown_.contains(name.substr(2));
      if (!option->get_type_name().empty() && option->get_type_size() != 0)
        name += " " + option->get_type_name();
      const std::string value = option->get_default_str();
      if (!option->get_description().empty() || rows.empty()) {
        rows.push_back({name, option->get_description(), value, shown});
        continue;
      }
      Row& row = rows.back();
      row.names += " " + name;
      if (!value.empty()) row.defaults += (row.defaults.empty() ? "" : ", ") + value;
      row.shown |= shown;
    }
    return rows;
  }

  static std::string text_of(const Row& row) {
    std::string line = fmt::format("  {:<{}}", row.names, kNames);
    if (line.ends_with(' ')) {
      line += " ";
    } else {
      line += "  ";
    }
    line += row.help;
    if (!row.defaults.empty()) line += fmt::format(" ({})", row.defaults);
    return line + "\n";
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
