// Files that are whole or absent: whatever goes wrong while writing, the previous file stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace gloss::io {

// Writes a file as a stream and puts it in place at once: temporary file in the same folder, fsync, rename,
// fsync of the folder. Without commit() the destructor removes the temporary file and nothing has changed.
// What a killed process left behind is removed by the next writer of the same file (a lock on the temporary
// file tells the dead from the living). A symbolic link stays and its target is replaced; the permissions of
// an existing file are kept. A device or pipe (/dev/null, /dev/stdout) is written directly.
// Throws Error with one sentence that names the file and the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Small pieces are gathered into large ones.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  uint64_t bytes_written() const { return bytes_written_; }
  // Nothing can be written afterwards.
  void commit();

 private:
  void open_temporary();
  void write_through(std::span<const std::byte> bytes);
  void discard() noexcept;
  [[noreturn]] void fail_because(int error);

  std::filesystem::path path_;       // as the caller named it, for messages
  std::filesystem::path target_;     // links followed
  std::filesystem::path temporary_;  // empty when writing to a device
  std::string buffer_;
  uint64_t bytes_written_ = 0;
  int descriptor_ = -1;
};

void write_file_atomically(const std::filesystem::path& path, std::string_view contents);

// A folder that is whole or absent, for checkpoints: write files below path(), then commit(). The files go to
// a hidden sibling folder that is renamed into place; a folder that was there is exchanged in one step and
// then removed. (File systems without an exchange, such as NFS, take two renames; a process killed between
// them leaves the former folder as ".<name>.previous", and the next writer puts it back.) Without commit()
// the destructor removes the hidden folder.
//
// A model folder that lives on, with logs and checkpoints beside the model, is instead written file by file
// with AtomicFile, `config.json` last: a reader asks for it first, so its presence marks a whole model.
class AtomicFolder {
 public:
  explicit AtomicFolder(std::filesystem::path target);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  const std::filesystem::path& path() const { return working_; }  // where to write until commit()
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path working_;  // empty once committed
  int lock_ = -1;                  // on the working folder, while its writer lives
};

// Before long work: makes the folder where it is missing, proves that a file can be written there and that
// `bytes_needed` are free. Throws Error otherwise.
void writable_folder(const std::filesystem::path& folder, uint64_t bytes_needed = 0);

}  // namespace gloss::io
