// What an experiment of the laboratory saw: tables, claims that hold or do not, a figure.
//
// An experiment is a class of its own, one a file:
//   static constexpr const char* kName, *kSummary;   // of the command and the list of commands
//   static constexpr const char* kRemoves;           // what --break takes away, in words
//   struct Options { ...; fields(self, visit) };      // sizes and seeds (base/options.h)
//   static Report run(const Options& options, Ingredient ingredient);
//   static constexpr bool kTimed = true;             // only where its text shows times, which differ
// Its claims must hold with the ingredient kept, and at least one must fail with it removed.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gloss/inspect/colour.h"
#include "gloss/inspect/picture.h"

namespace gloss::lab {

enum class Ingredient { kept, removed };

struct Table {
  std::string caption;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;

  // Columns in step, numbers and words alike to the right but for the first; ends with a newline.
  std::string text() const;
};

// A number as a table shows it: four digits that count.
std::string cell(double number);

struct Claim {
  std::string text;  // "the variance of q.k is d_k"
  bool holds = false;
  std::string seen;  // "0.97 to 1.04 times d_k"
};

struct Report {
  std::vector<Table> tables;
  std::vector<Claim> claims;
  // Draws the figure; empty where an experiment has none.
  std::function<inspect::Picture(inspect::PictureFormat, inspect::Theme)> figure;

  void claim(bool holds, std::string text, std::string seen) {
    claims.push_back({std::move(text), holds, std::move(seen)});
  }
  bool holds() const;
  // Tables and claims for a terminal.
  std::string text() const;
};

}  // namespace gloss::lab
