// Scoring given translations through the same steps that search takes.
#pragma once

#include <vector>

#include "gloss/models/decoder_state.h"

namespace gloss::decode {

// log P(y_t | y_<t, x) of every target token, the log-softmax over the whole vocabulary: the offsets are the
// targets'. Token by token, so slower than the teacher-forced pass, which it checks. Throws Error where the
// counts differ, a source is empty, a target token is outside the vocabulary, or the model gives numbers that
// are none.
Ragged<std::vector<float>> forced_log_probabilities(models::DecoderState& state, const Tokens& sources,
                                                    const Tokens& targets, int batch = 64);

}  // namespace gloss::decode
