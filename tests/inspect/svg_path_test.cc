#include "gloss/inspect/svg_path.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <vector>

#include "gloss/base/random.h"

namespace gloss::inspect {
namespace {

TEST(SvgPath, IsMadeOfSteps) {
  EXPECT_EQ(short_path("M 54.5 103 L 72.5 103 L 72.5 121 L 54.5 121 Z M 54.5 103 "), "m54.5 103h18v18h-18z");
  EXPECT_EQ(short_path("M 1 1 L 2 3 L 0.5 0.25 L 0.25 0.5"), "m1 1l1 2-1.5-2.75-.25.25");
  EXPECT_EQ(short_path("M 0 0 C 0.5 0.25 1 0.75 1 1.5 C 1 2 1 2 3 2"),
            "m0 0c.5.25 1 .75 1 1.5 0 .5 0 .5 2 .5");
  // A second outline begins from where the first one did.
  EXPECT_EQ(short_path("M 10 10 L 20 10 L 20 20 Z M 10 30 L 20 30 Z"), "m10 10h10v10zm0 20h10z");
  EXPECT_EQ(short_path("M 1 2 L 1 2"), "m1 2h0");  // a dot where line ends are round
}

TEST(SvgPath, HasNoMoveThatNothingFollows) {
  EXPECT_EQ(short_path("M 5 5"), "");
  EXPECT_EQ(short_path("M 5 5 M 7 7 L 8 8 Z M 7 7 M 1 1 "), "m7 7l1 1z");
  EXPECT_EQ(short_path("M 5 5 L 6 6 M 9 9 M 6 7 L 7 7"), "m5 5l1 1m0 1h1");
  EXPECT_EQ(short_path(""), "");
}

TEST(SvgPath, OfAnotherKindStaysAsItWas) {
  for (const char* path : {"M 1 2 Q 1 2 3 4", "M 1", "M 1 x", "m 1 1 l 2 2", "M 1 1 L 2 1e300",
                           "M 1 1 L nan 0", "1 2", "M 1 2 A 1 1 0 0 0 3 4"})
    EXPECT_EQ(short_path(path), path);
}

// Where the pen comes, read from either form by a reader of its own.
std::vector<std::pair<double, double>> stops(const std::string& path) {
  std::string spaced;  // a space before every number and letter
  bool point = false;
  for (const char c : path) {
    const bool ends =
        c == '-' || c == ' ' || std::isalpha(static_cast<unsigned char>(c)) || (c == '.' && point);
    if (ends) spaced += ' ', point = false;
    if (c == '.') point = true;
    spaced += c;
    if (std::isalpha(static_cast<unsigned char>(c))) spaced += ' ';
  }
  std::vector<std::pair<double, double>> stops;
  std::istringstream in(spaced);
  char letter = 0;
  double x = 0, y = 0, start_x = 0, start_y = 0;
  while (in >> std::ws && !in.eof()) {
    if (std::isalpha(in.peek())) in >> letter;
    const bool steps = letter >= 'a';
    const int kind = std::tolower(letter);
    if (kind == 'z') {
      stops.emplace_back(x = start_x, y = start_y);
      continue;
    }
    const double from_x = steps ? x : 0, from_y = steps ? y : 0;
    for (int i = 0; i < (kind == 'c' ? 3 : 1); ++i) {
      double a = 0, b = 0;
      if (kind != 'v') in >> a, x = from_x + a;
      if (kind != 'h') in >> b, y = from_y + b;
      stops.emplace_back(x, y);
    }
    if (kind == 'm') start_x = x, start_y = y;
  }
  return stops;
}

TEST(SvgPath, ComesToTheSamePlaces) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const RandomKey key(seed);
    uint64_t drawn = 0;
    // Rounded to tenths often, so that lines run straight and numbers are short or none.
    const auto number = [&] {
      const double v = 20 * key.uniform(drawn++) - 10;
      return fmt::format("{:.2f}", key.below(drawn++, 3) == 0 ? std::round(v / 5) * 5 : v);
    };
    std::string path;
    for (int outline = 0; outline < 3; ++outline) {
      path += "M " + number() + " " + number() + " ";
      for (uint64_t i = key.below(drawn++, 6) + 1; i > 0; --i) {
        const int places = key.below(drawn++, 2) == 0 ? 1 : 3;
        path += places == 1 ? "L " : "C ";
        for (int place = 0; place < places; ++place) path += number() + " " + number() + " ";
      }
      if (key.below(drawn++, 2) == 0) path += "Z ";
    }
    const std::string shorter = short_path(path);
    EXPECT_LT(shorter.size(), path.size());
    const auto expected = stops(path), found = stops(shorter);
    ASSERT_EQ(found.size(), expected.size()) << path << "\n" << shorter;
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i].first, expected[i].first, 1e-9) << path << "\n" << shorter;
      EXPECT_NEAR(found[i].second, expected[i].second, 1e-9) << path << "\n" << shorter;
    }
  }
}

}  // namespace
}  // namespace gloss::inspect
