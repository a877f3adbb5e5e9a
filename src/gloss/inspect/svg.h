// What cairo's SVG needs before it is published.
#pragma once

#include <string>
#include <string_view>

namespace gloss::inspect {

// Cairo numbers some names through the life of a process: here they are numbered in order, so that one
// drawing always gives the same bytes, and begin with a hash of the drawing, so that several pictures can
// stand in one HTML page. What is finer than a hundredth of a point or goes without saying is left out,
// and outlines are written as steps (svg_path.h): a third of the file stays. The title becomes <title>, which
// screen readers read.
std::string tidy_svg(std::string_view svg, std::string_view title);

}  // namespace gloss::inspect
