#include "gloss/inspect/colour.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gloss::inspect {
namespace {

// The transfer curve of sRGB (IEC 61966-2-1).
double to_linear(double v) {
  return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
}
double from_linear(double v) {
  return v <= 0.0031308 ? v * 12.92 : 1.055 * std::pow(v, 1 / 2.4) - 0.055;
}

double luminance(const Colour& c) {
  return 0.2126 * to_linear(c.red) + 0.7152 * to_linear(c.green) + 0.0722 * to_linear(c.blue);
}

// Lightness, chroma and hue of each line colour. Found by a search for the largest smallest distance in Oklab
// among all pairs, as seen normally and without red or green cones: 0.17 or more (inspect.colour_test).
struct Lch {
  double lightness, chroma, hue;
};
constexpr Lch kOnLight[kSeriesColours] = {{0.50, 0.19, 260}, {0.66, 0.145, 120}, {0.50, 0.15, 0},
                                          {0.66, 0.11, 220}, {0.30, 0.088, 40},  {0.30, 0.16, 290}};
constexpr Lch kOnDark[kSeriesColours] = {{0.74, 0.135, 230}, {0.90, 0.17, 100}, {0.74, 0.12, 40},
                                         {0.90, 0.115, 190}, {0.54, 0.118, 60}, {0.54, 0.20, 270}};

constexpr double kDarkPageLightness = 0.2, kDarkPageChroma = 0.01;

}  // namespace

Oklab to_oklab(const Colour& colour) {
  const double r = to_linear(colour.red), g = to_linear(colour.green), b = to_linear(colour.blue);
  const double l = std::cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const double m = std::cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const double s = std::cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
          1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
          0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

Colour from_oklab(const Oklab& lab) {
  const auto cube = [](double v) { return v * v * v; };
  const double l = cube(lab.lightness + 0.3963377774 * lab.a + 0.2158037573 * lab.b);
  const double m = cube(lab.lightness - 0.1055613458 * lab.a - 0.0638541728 * lab.b);
  const double s = cube(lab.lightness - 0.0894841775 * lab.a - 1.2914855480 * lab.b);
  return {from_linear(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
          from_linear(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
          from_linear(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

Colour from_oklch(double lightness, double chroma, double hue) {
  const double angle = hue * std::numbers::pi / 180;
  return from_oklab({lightness, chroma * std::cos(angle), chroma * std::sin(angle)});
}

double oklab_distance(const Colour& a, const Colour& b) {
  const Oklab x = to_oklab(a), y = to_oklab(b);
  return std::hypot(x.lightness - y.lightness, x.a - y.a, x.b - y.b);
}

Colour mix(const Colour& a, const Colour& b, double t) {
  const Oklab x = to_oklab(a), y = to_oklab(b);
  const auto between = [t](double from, double to) { return from + (to - from) * t; };
  return from_oklab({between(x.lightness, y.lightness), between(x.a, y.a), between(x.b, y.b)});
}

double contrast(const Colour& a, const Colour& b) {
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

uint32_t to_rgb24(const Colour& colour) {
  const auto channel = [](double v) {
    return static_cast<uint32_t>(std::lround(std::clamp(v, 0.0, 1.0) * 255));
  };
  return channel(colour.red) << 16 | channel(colour.green) << 8 | channel(colour.blue);
}

Palette palette(Theme theme) {
  if (theme == Theme::light)
    return {{1, 1, 1},
            from_oklch(0.25, 0.01, 280),
            from_oklch(0.52, 0.01, 280),
            from_oklch(0.92, 0.003, 280),
            from_oklch(0.62, 0.2, 30)};
  return {from_oklch(kDarkPageLightness, kDarkPageChroma, 280), from_oklch(0.94, 0.005, 280),
          from_oklch(0.72, 0.01, 280), from_oklch(0.32, 0.01, 280), from_oklch(0.66, 0.2, 30)};
}

Colour scale_colour(Theme theme, double t) {
  t = std::clamp(t, 0.0, 1.0);
  const auto between = [](double from, double to, double at) { return from + (to - from) * at; };
  constexpr double kDarkest = 0.27, kPalest = 0.97;  // the strong ends
  constexpr double kYellow = 105, kGreen = 160, kBlue = 282;
  constexpr double kChroma = 0.1;  // about what screens can show along the whole way
  // Colour comes soon, so that a pale cell is told from a grey one.
  const double colouring = 1 - (1 - t) * (1 - t) * (1 - t);
  if (theme == Theme::light)
    return from_oklch(between(1, kDarkest, t), kChroma * colouring, between(kGreen, kBlue, t));
  return from_oklch(between(kDarkPageLightness, kPalest, t), between(kDarkPageChroma, kChroma, colouring),
                    between(kBlue, kYellow, t));
}

Colour series_colour(Theme theme, size_t index) {
  // By a pointer: GCC 12 with UBSan takes index 0 of a choice between two arrays, whatever is asked for.
  const Lch* colours = theme == Theme::light ? kOnLight : kOnDark;
  const Lch& c = colours[index % kSeriesColours];
  return from_oklch(c.lightness, c.chroma, c.hue);
}

}  // namespace gloss::inspect
