// The CPU's own intrinsics, without GCC 12's false warnings: their undefined vectors are used uninitialised
// on purpose.
#pragma once

#include <hwy/base.h>

HWY_DIAGNOSTICS(push)
HWY_DIAGNOSTICS_OFF(disable : 4701, ignored "-Wuninitialized")
HWY_DIAGNOSTICS_OFF(disable : 4703 6001 26494, ignored "-Wmaybe-uninitialized")
#include <immintrin.h>  // IWYU pragma: export
HWY_DIAGNOSTICS(pop)
