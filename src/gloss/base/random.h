// Counter-based random numbers: a number depends on its key and index alone, never on threads or call order.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace gloss {

// A key names a stream of random numbers: (seed, step, layer) for dropout, (seed, tensor name) for initial
// weights, (seed, text, step) for sampling. `with` derives the key of a sub-stream.
class RandomKey {
 public:
  explicit constexpr RandomKey(uint64_t seed = 0) : state_(mix(seed + 0x9E3779B97F4A7C15u)) {}

  constexpr RandomKey with(uint64_t part) const {
    RandomKey key;
    key.state_ = mix(state_ ^ mix(part + 0xD1B54A32D192ED03u));
    return key;
  }
  constexpr RandomKey with(std::string_view name) const {
    uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
    return with(hash);
  }

  constexpr uint64_t state() const { return state_; }
  constexpr uint64_t bits(uint64_t index) const { return mix(state_ + index * 0x9E3779B97F4A7C15u); }

  // Uniform in [0, 1), 53 bits.
  constexpr double uniform(uint64_t index) const { return static_cast<double>(bits(index) >> 11) * 0x1p-53; }
  // Uniform integer in [0, bound); the bias is below bound / 2^64.
  constexpr uint64_t below(uint64_t index, uint64_t bound) const {
    return static_cast<uint64_t>((static_cast<Wide>(bits(index)) * bound) >> 64);
  }
  // Standard normal (Box and Muller 1958).
  double normal(uint64_t index) const {
    const double u = uniform(2 * index), v = uniform(2 * index + 1);
    return std::sqrt(-2.0 * std::log1p(-u)) * std::cos(2.0 * std::numbers::pi * v);
  }

 private:
  __extension__ using Wide = unsigned __int128;
  // The finaliser of SplitMix64 (Steele, Lea and Flood 2014).
  static constexpr uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }
  uint64_t state_ = 0;
};

}  // namespace gloss
