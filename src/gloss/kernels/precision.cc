#include "gloss/kernels/precision.h"

#include <fmt/ranges.h>

#include <array>
#include <atomic>
#include <string>

#include "gloss/base/error.h"
#include "gloss/kernels/isa.h"

namespace gloss::kernels {
namespace {

constexpr std::array<std::string_view, 3> kNames{"float32", "bfloat16", "int8"};  // in the order of Precision
std::atomic<bool> vnni_allowed{true};

// These ask the CPU and the system, which must save the wide registers.
bool cpu_has_bf16() {
  return __builtin_cpu_supports("avx512bf16") != 0;
}
bool cpu_has_vnni() {
  return __builtin_cpu_supports("avx512vnni") != 0;
}

}  // namespace

std::string_view precision_name(Precision precision) {
  return kNames[static_cast<size_t>(precision)];
}

Precision parse_precision(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Precision>(i);
  }
  throw UsageError(fmt::format("unknown precision '{}': choose one of {}", name, fmt::join(kNames, ", ")));
}

bool precision_served(Precision precision) {
  return precision != Precision::bfloat16 || (current_isa() == Isa::avx512 && cpu_has_bf16());
}

void require_precision(Precision precision) {
  if (precision_served(precision)) return;
  const std::string found = cpu_has_bf16() ? fmt::format("the kernels run on {}", isa_name(current_isa()))
                                           : "this CPU has no AVX512_BF16";
  throw UsageError(fmt::format(
      "bfloat16 needs AVX512_BF16 on the instruction set avx512, but {}: choose float32 or int8", found));
}

bool vnni_served() {
  return vnni_allowed.load(std::memory_order_relaxed) && current_isa() == Isa::avx512 && cpu_has_vnni();
}

void allow_vnni(bool allowed) {
  vnni_allowed.store(allowed, std::memory_order_relaxed);
}

}  // namespace gloss::kernels
