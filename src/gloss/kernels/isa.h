// Which instruction set the kernels run on: chosen once from the CPU, limited by `--isa` or GLOSS_ISA.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gloss::kernels {

enum class Isa { ssse3, sse4, avx2, avx512 };

std::string_view isa_name(Isa isa);    // "avx2"
Isa parse_isa(std::string_view name);  // throws UsageError listing the names there are
std::vector<Isa> supported_isas();     // what this CPU has, weakest first
Isa current_isa();                     // what the kernels run on now
// Limits every kernel to `isa`; an instruction set this CPU lacks is a UsageError. Packed matrices made
// before must be packed again. Not while kernels run.
void limit_isa(Isa isa);
// Applies the variable GLOSS_ISA if it is set; an unknown or unsupported value is a UsageError.
void limit_isa_from_environment();

}  // namespace gloss::kernels
