// Kernel regression (Nadaraya 1964, Watson 1964) as the first attention: the nearer x_i, the more y_i counts.
#pragma once

#include <cstdint>
#include <string>

#include "gloss/base/options.h"
#include "gloss/lab/report.h"

namespace gloss::lab {

class KernelRegression {
 public:
  static constexpr const char* kName = "kernel-regression";
  static constexpr const char* kSummary = "Nadaraya-Watson regression as attention, on your own data too";
  static constexpr const char* kRemoves = "the softmax over x_i: it runs over the queries instead";

  struct Options {
    std::string data{};
    std::string x = "1", y = "2";
    double bandwidth = 1;
    int64_t n = 40;
    int64_t seed = 1;

    template <class Self, class Visitor>
    static void fields(Self& self, Visitor&& visit) {
      visit(Field("data", "FILE", "CSV of your own instead of a noisy wave"), self.data);
      visit(Field("x", "COLUMN", "of the CSV, by name or number"), self.x);
      visit(Field("y", "COLUMN", "of the CSV, by name or number"), self.y);
      visit(Field("bandwidth", "B", "in the middle of those that are tried").range(1e-9, 1e9),
            self.bandwidth);
      visit(Field("n", "N", "points of the wave").range(2, 10000), self.n);
      visit(Field("seed", "N", "of the wave's noise").at_least(0), self.seed);
    }
  };
  static Report run(const Options& options, Ingredient ingredient);
};

}  // namespace gloss::lab
