// Hidden temporary files and folders of AtomicFile and AtomicFolder: their names, who owns them, and what to
// advise when the system refuses.
#pragma once

#include <filesystem>
#include <string>

namespace gloss::io {

// A fresh hidden name beside `target`: ".<name>.unfinished-<process>-<counter>".
std::filesystem::path unfinished_name(const std::filesystem::path& target);

// Locks an open temporary file or folder for as long as this process lives or keeps it open. False when
// somebody removed it before.
bool mark_alive(int descriptor);

// Removes what dead writers of `target` left behind. Never throws: what cannot be removed stays.
void remove_unfinished(const std::filesystem::path& target) noexcept;

// Makes a rename durable. Best effort: some file systems cannot sync a folder.
void sync_folder(const std::filesystem::path& folder);

// What a user can do about a failed write: "free some space and run again".
std::string remedy(int error);

}  // namespace gloss::io
