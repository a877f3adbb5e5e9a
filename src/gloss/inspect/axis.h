// Axes of charts: from values to places, and the numbers beside them.
#pragma once

#include <string>
#include <vector>

namespace gloss::inspect {

enum class Scaling { linear, logarithmic };

struct Tick {
  double value = 0;
  std::string label;
};

class Axis {
 public:
  // Reaches from `low` to `high` and a little beyond where they are one. A logarithmic axis needs both above
  // 0. Throws Error for what is no interval.
  Axis(double low, double high, Scaling scaling);

  double low() const { return low_; }
  double high() const { return high_; }
  // 0 at low(), 1 at high(). Of a value the axis can show: finite, and above 0 on a logarithmic one.
  double place(double value) const;
  // Round numbers on the axis, as many as fit but not more than `most` (at least 2): 1, 2 or 5 times a power
  // of ten apart; on a logarithmic axis powers of ten, and 2 and 5 times these where there is room.
  std::vector<Tick> ticks(int most) const;

 private:
  std::vector<Tick> linear_ticks(int most) const;
  std::vector<Tick> logarithmic_ticks(int most) const;

  double low_, high_;
  Scaling scaling_;
};

// Numbers of one axis, alike in form: 2,500 or 120k, 0.05, 1e-06. `step` is how far they are apart.
std::string tick_label(double value, double step, double largest);

}  // namespace gloss::inspect
