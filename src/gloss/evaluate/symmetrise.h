// Two word alignments of the same sentence pair, one from a model of each direction, made one (Koehn, Och and
// Marcu 2003; Koehn et al. 2005).
#pragma once

#include "gloss/evaluate/alignment.h"

namespace gloss::evaluate {

enum class Symmetrisation {
  intersection,
  union_,
  grow_diag,            // from the intersection to links of the union beside it
  grow_diag_final,      // and then links of either that reach a word without one
  grow_diag_final_and,  // the same for links between two words without one
};

// `forward` comes from the model that translates source into target, where each target word has the source
// word it looked at; `backward` from the model of the other direction, its links turned round, so that both
// are source-target.
//
// What is made depends on the order in which links are looked at, and it is that of Moses (symal):
//  - growing walks over the links there are by target word, then source word, and around each over its
//    neighbours: one target word back, one source word back, one target word on, one source word on, then
//    (-1, -1), (-1, +1), (+1, -1), (+1, +1), target first. A neighbour in the union joins at once if its
//    source word or its target word has no link yet, and is walked over in the same round where it comes
//    later. Rounds go on until one adds nothing.
//  - the final step offers the links of `forward`, then those of `backward`, each by target, then source; a
//    link that joins counts for the next.
// Throws Error for negative numbers.
Alignment symmetrise(const Alignment& forward, const Alignment& backward, Symmetrisation method);

}  // namespace gloss::evaluate
