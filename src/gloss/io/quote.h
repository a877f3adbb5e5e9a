// How text that came from a file is shown in an error message.
#pragma once

#include <string>
#include <string_view>

namespace gloss::io {

// At most 80 bytes of the text (cut between characters, "..." appended), control bytes written as \xNN: a
// hostile name neither floods nor garbles the terminal.
std::string abridged(std::string_view text);
// The same in single quotes.
std::string in_quotes(std::string_view text);

}  // namespace gloss::io
