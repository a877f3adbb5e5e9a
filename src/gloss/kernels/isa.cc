#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gloss/kernels/isa.cc"  // this file, compiled once a target
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "gloss/kernels/isa.h"

HWY_BEFORE_NAMESPACE();
namespace gloss::kernels::HWY_NAMESPACE {
namespace {
int64_t target() {
  return HWY_TARGET;
}
}  // namespace
}  // namespace gloss::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <fmt/ranges.h>

#include <array>
#include <cstdlib>

#include "gloss/base/error.h"

namespace gloss::kernels {
namespace {
HWY_EXPORT(target);

struct Entry {
  Isa isa;
  std::string_view name;
  int64_t target;
};
constexpr std::array<Entry, 4> kIsas{{{Isa::ssse3, "ssse3", HWY_SSSE3},
                                      {Isa::sse4, "sse4", HWY_SSE4},
                                      {Isa::avx2, "avx2", HWY_AVX2},
                                      {Isa::avx512, "avx512", HWY_AVX3}}};

// Everything Highway may pick on this machine, as it was before any limit.
int64_t machine_targets() {
  static const int64_t targets = [] {
    hwy::SetSupportedTargetsForTest(0);
    return hwy::SupportedTargets();
  }();
  return targets;
}
}  // namespace

std::string_view isa_name(Isa isa) {
  return kIsas[static_cast<size_t>(isa)].name;
}

Isa parse_isa(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Entry& entry : kIsas) {
    if (entry.name == name) return entry.isa;
    names.push_back(entry.name);
  }
  throw UsageError(
      fmt::format("unknown instruction set '{}': choose one of {}", name, fmt::join(names, ", ")));
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  for (const Entry& entry : kIsas) {
    if (machine_targets() & entry.target) isas.push_back(entry.isa);
  }
  return isas;
}

Isa current_isa() {
  const int64_t now = HWY_DYNAMIC_DISPATCH(target)();
  for (const Entry& entry : kIsas) {
    if (entry.target == now) return entry.isa;
  }
  fail("this CPU has none of the instruction sets Gloss is built for (SSSE3 is the least)");
}

void limit_isa(Isa isa) {
  int64_t allowed = 0;
  bool supported = false;
  for (const Entry& entry : kIsas) {
    if (entry.isa > isa) continue;
    allowed |= entry.target & machine_targets();
    if (entry.isa == isa) supported = (entry.target & machine_targets()) != 0;
  }
  if (!supported) {
    std::vector<std::string_view> names;
    for (const Isa each : supported_isas()) names.push_back(isa_name(each));
    throw UsageError(fmt::format("this CPU has no {}: it has {}", isa_name(isa), fmt::join(names, ", ")));
  }
  hwy::SetSupportedTargetsForTest(allowed);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

void limit_isa_from_environment() {
  const char* value = std::getenv("GLOSS_ISA");
  if (value && *value) limit_isa(parse_isa(value));
}

}  // namespace gloss::kernels
#endif  // HWY_ONCE
