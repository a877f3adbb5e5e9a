// Outlines in SVG, in fewer bytes.
#pragma once

#include <string>
#include <string_view>

namespace gloss::inspect {

// A path as cairo writes it, "M 1.25 0.5 L 3.25 0.5 L 3.25 1 Z M 1.25 0.5 ", as "m1.25.5h2v.5z": steps
// instead of places, rounded to hundredths so that no step adds to the error of the one before, and no move
// that nothing follows. What is not made of M, L, C and Z comes back as it was.
std::string short_path(std::string_view path);

}  // namespace gloss::inspect
