// How text that came from a file is shown in an error message.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace gloss::io {

// Control bytes written as \xNN.
std::string printable(std::string_view text);
// At most 80 bytes of the text (cut between characters, "..." appended), control bytes written as \xNN: a
// hostile name neither floods nor garbles the terminal.
std::string abridged(std::string_view text);
// The same in single quotes.
std::string in_quotes(std::string_view text);
// A path as the user wrote it, an empty one as '', a very long one shortened in its middle.
std::string shown(const std::filesystem::path& path);

}  // namespace gloss::io
