// Colours that the eye reads evenly, for light and dark pages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gloss::inspect {

// sRGB with its transfer curve, as files and screens have it; 0 to 1.
struct Colour {
  double red = 0, green = 0, blue = 0;
  bool operator==(const Colour&) const = default;
};

// Oklab (Ottosson 2020, "A perceptual color space for image processing"): equal distances look about equally
// large. lightness from 0 (black) to 1 (white); a runs from green to red, b from blue to yellow.
struct Oklab {
  double lightness = 0, a = 0, b = 0;
};

Oklab to_oklab(const Colour& colour);
// Channels outside 0..1 mean that no screen can show it.
Colour from_oklab(const Oklab& lab);
// The same by chroma (distance from grey) and hue in degrees.
Colour from_oklch(double lightness, double chroma, double hue);
double oklab_distance(const Colour& a, const Colour& b);

// From a (t = 0) to b (t = 1) on a straight line in Oklab.
Colour mix(const Colour& a, const Colour& b, double t);

// Contrast of WCAG 2.1, from 1 (equal) to 21 (black on white): text needs 4.5, lines 3.
double contrast(const Colour& a, const Colour& b);

// 0xRRGGBB, each channel rounded to eight bits.
uint32_t to_rgb24(const Colour& colour);

enum class Theme { light, dark };

// What a picture is drawn with besides its data.
struct Palette {
  Colour page, text;
  Colour soft;   // axes, ticks, what is said in passing
  Colour faint;  // grid lines
  Colour alarm;  // values that are none
};
Palette palette(Theme theme);

// The scale of a heat map, t in 0..1: from the page's own colour to the strong end, which is dark blue on a
// light page and pale yellow on a dark one. Lightness is linear in t, which is what makes equal steps look
// equal and the scale readable for the colour-blind and in grey print; hue turns from yellow (light) by green
// to blue (dark) with lightness, along the direction that all kinds of dichromats see.
Colour scale_colour(Theme theme, double t);

// Colours of lines, for runs and series. Six that stay apart in normal vision and without red or green cones,
// each with a contrast of 3 or more on the page; then they repeat. Whoever draws more than one line tells
// them apart by dashes too.
inline constexpr size_t kSeriesColours = 6;
Colour series_colour(Theme theme, size_t index);

}  // namespace gloss::inspect
