// The time that limits, saves and progress lines go by.
#pragma once

#include <chrono>
#include <functional>

namespace gloss::train {

// Seconds since some fixed moment, never falling. Tests give one of their own, so that they wait for nothing.
using Clock = std::function<double()>;

inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace gloss::train
