// gloss-dates: writes the date corpus that ./quickstart trains on.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "corpus.h"
#include "gloss/base/error.h"

namespace {

void list_ways(gloss::dates::Day day) {
  int count = 0;
  for (const gloss::dates::Way& way : gloss::dates::ways()) {
    fmt::print("{:3}  {}  {}{}\n", ++count, way.language == gloss::dates::Language::kEnglish ? "en" : "de",
               gloss::dates::write(way, day), way.held_out ? "   (held out of training)" : "");
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "Writes a corpus of dates in English and German with their ISO form.\n"
      "Example: gloss-dates --output dates   makes dates/train.src, dates/train.iso and so on.",
      "gloss-dates");
  std::string output, example;
  uint64_t seed = 1;
  gloss::dates::CorpusSizes sizes;
  app.add_option("--output", output, "folder to write to")->type_name("FOLDER");
  app.add_option("--seed", seed, "the same seed gives the same corpus")->capture_default_str();
  app.add_option("--train", sizes.train, "pairs to train on")->capture_default_str();
  app.add_option("--valid", sizes.valid, "pairs to validate on")->capture_default_str();
  app.add_option("--test", sizes.test, "pairs to test on, of days not in train")->capture_default_str();
  app.add_option("--heldout", sizes.heldout, "pairs written in ways not in train")->capture_default_str();
  auto* list = app.add_option("--list", example, "print all ways to write a day, 2021-09-08 by default");
  list->expected(0, 1)->type_name("DATE");
  try {
    app.parse(argc, argv);
    if (list->count() > 0) {
      for (const CLI::Option* option : app.get_options()) {
        if (option == list || option->count() == 0) continue;
        fmt::print(stderr, "gloss-dates: --list prints one day and writes nothing: leave out {}\n",
                   option->get_name());
        return 2;
      }
      list_ways(gloss::dates::from_iso(example.empty() ? "2021-09-08" : example));
    } else if (output.empty()) {
      fmt::print(stderr, "gloss-dates: nothing to do: give --output FOLDER or --list\n");
      return 2;
    } else {
      gloss::dates::write_corpus(gloss::dates::make_corpus(seed, sizes), output);
      fmt::print(stderr, "{}: {} pairs to train on, {} to validate, {} to test, {} in held-out ways\n",
                 output, sizes.train, sizes.valid, sizes.test, sizes.heldout);
    }
    return 0;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "gloss-dates: {}; try --help\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "gloss-dates: {}\n", error.what());
    return 1;
  }
}
