#include "gloss/inspect/colour.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace gloss::inspect {
namespace {

using Triple = std::array<double, 3>;
using Matrix = std::array<Triple, 3>;

Triple times(const Matrix& m, const Triple& v) {
  Triple out{};
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) out[i] += m[i][j] * v[j];
  }
  return out;
}

// By Cramer's rule.
Matrix inverse(const Matrix& m) {
  const auto cofactor = [&](size_t i, size_t j) {
    const size_t a = (i + 1) % 3, b = (i + 2) % 3, c = (j + 1) % 3, d = (j + 2) % 3;
    return m[a][c] * m[b][d] - m[a][d] * m[b][c];
  };
  double determinant = 0;
  for (size_t j = 0; j < 3; ++j) determinant += m[0][j] * cofactor(0, j);
  Matrix out{};
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) out[j][i] = cofactor(i, j) / determinant;
  }
  return out;
}

// What people without one kind of cones see (Vienot, Brettel and Mollon 1999): in cone space the missing
// response is put together from the other two, so that white and blue stay as they are.
enum class Eye { normal, protan, deutan };

Colour seen(const Colour& colour, Eye eye) {
  if (eye == Eye::normal) return colour;
  const Matrix to_cones{
      {{17.8824, 43.5161, 4.11935}, {3.45565, 27.1554, 3.86714}, {0.0299566, 0.184309, 1.46709}}};
  const auto linear = [](double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
  const auto curved = [](double v) {
    v = std::clamp(v, 0.0, 1.0);
    return v <= 0.0031308 ? 12.92 * v : 1.055 * std::pow(v, 1 / 2.4) - 0.055;
  };
  const size_t missing = eye == Eye::protan ? 0 : 1, other = 1 - missing;
  const Triple white = times(to_cones, {1, 1, 1}), blue = times(to_cones, {0, 0, 1});
  const double determinant = white[other] * blue[2] - blue[other] * white[2];
  const double of_other = (white[missing] * blue[2] - blue[missing] * white[2]) / determinant;
  const double of_short = (white[other] * blue[missing] - blue[other] * white[missing]) / determinant;
  Triple cones = times(to_cones, {linear(colour.red), linear(colour.green), linear(colour.blue)});
  cones[missing] = of_other * cones[other] + of_short * cones[2];
  const Triple out = times(inverse(to_cones), cones);
  return {curved(out[0]), curved(out[1]), curved(out[2])};
}

constexpr Eye kEyes[] = {Eye::normal, Eye::protan, Eye::deutan};
constexpr Theme kThemes[] = {Theme::light, Theme::dark};

TEST(Colour, SimulationConfusesRedAndGreenOnly) {
  const Colour red = from_oklch(0.6, 0.12, 30), green = from_oklch(0.6, 0.12, 130);
  const Colour blue = from_oklch(0.6, 0.12, 260);
  for (const Eye eye : {Eye::protan, Eye::deutan}) {
    EXPECT_LT(oklab_distance(seen(red, eye), seen(green, eye)), 0.6 * oklab_distance(red, green));
    EXPECT_GT(oklab_distance(seen(green, eye), seen(blue, eye)), 0.12);
    EXPECT_LT(oklab_distance(seen({0.5, 0.5, 0.5}, eye), {0.5, 0.5, 0.5}), 1e-3);
  }
}

// The values of the paper's author for the CIE's primaries, to the digits he gives.
TEST(Colour, OklabHasItsPublishedPoints) {
  const Oklab white = to_oklab({1, 1, 1}), red = to_oklab({1, 0, 0});
  EXPECT_NEAR(white.lightness, 1, 1e-6);
  EXPECT_NEAR(std::hypot(white.a, white.b), 0, 1e-6);
  EXPECT_NEAR(red.lightness, 0.62796, 1e-4);
  EXPECT_NEAR(red.a, 0.22486, 1e-4);
  EXPECT_NEAR(red.b, 0.12585, 1e-4);
  for (const Colour c : {Colour{0.2, 0.9, 0.4}, Colour{0.01, 0, 0.02}, Colour{1, 0.5, 0}}) {
    const Colour back = from_oklab(to_oklab(c));
    EXPECT_NEAR(back.red, c.red, 1e-6);
    EXPECT_NEAR(back.green, c.green, 1e-6);
    EXPECT_NEAR(back.blue, c.blue, 1e-6);
  }
}

TEST(Colour, ContrastIsThatOfTheWebGuidelines) {
  EXPECT_NEAR(contrast({1, 1, 1}, {0, 0, 0}), 21, 1e-9);
  EXPECT_NEAR(contrast({0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}), 1, 1e-12);
  // #777777 on white is the well-known grey that just misses 4.5.
  EXPECT_NEAR(contrast({1, 1, 1}, {119 / 255.0, 119 / 255.0, 119 / 255.0}), 4.48, 0.005);
}

TEST(Colour, RoundsChannelsToEightBits) {
  EXPECT_EQ(to_rgb24({1, 0.5, 0}), 0xFF8000u);
  EXPECT_EQ(to_rgb24({-0.1, 1.2, 1}), 0x00FFFFu);
}

TEST(ColourScale, BeginsWithThePageAndCanBeShown) {
  for (const Theme theme : kThemes) {
    EXPECT_EQ(to_rgb24(scale_colour(theme, 0)), to_rgb24(palette(theme).page));
    EXPECT_EQ(to_rgb24(scale_colour(theme, -1)), to_rgb24(palette(theme).page));
    EXPECT_EQ(to_rgb24(scale_colour(theme, 2)), to_rgb24(scale_colour(theme, 1)));
    for (int i = 0; i <= 1000; ++i) {
      const Colour c = scale_colour(theme, i / 1000.0);
      for (const double channel : {c.red, c.green, c.blue}) {
        EXPECT_GT(channel, -1e-4) << i;
        EXPECT_LT(channel, 1 + 1e-4) << i;
      }
    }
  }
}

// As the file has it, rounded to eight bits.
Colour rounded(const Colour& colour) {
  const uint32_t rgb = to_rgb24(colour);
  return {(rgb >> 16) / 255.0, (rgb >> 8 & 255) / 255.0, (rgb & 255) / 255.0};
}

TEST(ColourScale, LightnessIsMonotoneAndEven) {
  constexpr int kSteps = 20;
  for (const Theme theme : kThemes) {
    const auto lightness = [&](int i) {
      return to_oklab(rounded(scale_colour(theme, i / double{kSteps}))).lightness;
    };
    const double mean = (lightness(kSteps) - lightness(0)) / kSteps;
    EXPECT_GT(std::abs(mean) * kSteps, 0.7) << "the ends are too near";
    for (int i = 0; i < kSteps; ++i)
      EXPECT_NEAR((lightness(i + 1) - lightness(i)) / mean, 1, 0.08)
          << "step " << i;  // of which rounding takes most
    for (int i = 0; i < 250; ++i) {
      const auto fine = [&](int k) { return to_oklab(scale_colour(theme, k / 250.0)).lightness; };
      EXPECT_NEAR((fine(i + 1) - fine(i)) / (mean * kSteps / 250), 1, 0.01);
    }
  }
}

TEST(ColourScale, StepsAreAlikeForEveryEye) {
  constexpr int kSteps = 20;
  for (const Theme theme : kThemes) {
    for (const Eye eye : kEyes) {
      double least = 1, most = 0, before = 0;
      for (int i = 0; i < kSteps; ++i) {
        const Colour a = seen(scale_colour(theme, i / double{kSteps}), eye);
        const Colour b = seen(scale_colour(theme, (i + 1) / double{kSteps}), eye);
        least = std::min(least, oklab_distance(a, b));
        most = std::max(most, oklab_distance(a, b));
        const double rise = to_oklab(b).lightness - to_oklab(a).lightness;
        EXPECT_TRUE(i == 0 || (rise > 0) == (before > 0)) << "the scale turns back at step " << i;
        before = rise;
      }
      EXPECT_GT(least, 0.02);        // a twentieth is told apart side by side
      EXPECT_LT(most / least, 2.2);  // and the largest step is not twice the smallest, but for rounding
    }
  }
}

TEST(SeriesColours, StayApartForEveryEyeAndOnThePage) {
  for (const Theme theme : kThemes) {
    for (size_t i = 0; i < kSeriesColours; ++i) {
      EXPECT_GE(contrast(series_colour(theme, i), palette(theme).page), 2.9) << i;
      for (size_t j = 0; j < i; ++j) {
        for (const Eye eye : kEyes) {
          EXPECT_GT(oklab_distance(seen(series_colour(theme, i), eye), seen(series_colour(theme, j), eye)),
                    0.15)
              << i << " and " << j;
        }
      }
    }
    EXPECT_EQ(series_colour(theme, kSeriesColours), series_colour(theme, 0));
  }
}

TEST(Palette, TextCanBeRead) {
  for (const Theme theme : kThemes) {
    const Palette page = palette(theme);
    EXPECT_GE(contrast(page.text, page.page), 7);
    EXPECT_GE(contrast(page.soft, page.page), 4.5);
    EXPECT_GE(contrast(page.alarm, page.page), 3);
    EXPECT_GT(contrast(page.faint, page.page), 1.1);
    EXPECT_LT(contrast(page.faint, page.page), 2);
    // Numbers on cells: whichever of the two is better can be read on every colour of the scale.
    for (int i = 0; i <= 100; ++i) {
      const Colour under = scale_colour(theme, i / 100.0);
      EXPECT_GE(std::max(contrast(page.text, under), contrast(page.page, under)), 3.5) << i;
    }
  }
}

TEST(Mix, GoesFromOneToTheOther) {
  const Colour a = from_oklch(0.3, 0.1, 20), b = from_oklch(0.8, 0.05, 200);
  EXPECT_LT(oklab_distance(mix(a, b, 0), a), 1e-6);
  EXPECT_LT(oklab_distance(mix(a, b, 1), b), 1e-6);
  EXPECT_NEAR(to_oklab(mix(a, b, 0.5)).lightness, 0.55, 1e-6);
}

}  // namespace
}  // namespace gloss::inspect
