// gloss train: a model folder out of two parallel text files.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <string_view>

#include "command.h"
#include "gloss/train/trainer.h"
#include "option_table.h"
#include "streams.h"

namespace gloss::cli {
namespace {

// Written by the signal handler, which can reach nothing but what is static.
std::atomic<bool> stop_training{false};
std::atomic<int> stopping_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "a signal handler may only store what needs no lock");

// The first signal saves and leaves; a second one, of whichever kind and on whichever thread, ends the
// program at once.
void handle_stop(int signal) {
  int none = 0;
  if (stopping_signal.compare_exchange_strong(none, signal)) {
    stop_training.store(true);
    tell("\nsaving; a second signal leaves at once without saving\n");
  } else {
    ::signal(signal, SIG_DFL);
    ::raise(signal);  // comes when this function returns
  }
}

void install_stop_handlers() {
  struct sigaction action {};
  action.sa_handler = handle_stop;
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (signal == SIGHUP && before.sa_handler == SIG_IGN)
      continue;  // nohup: the closed terminal is no reason
    ::sigaction(signal, &action, nullptr);
  }
  // Who read our messages may leave; the training goes on.
  std::signal(SIGPIPE, SIG_IGN);
}

// A line that renews itself on a terminal; in a log file one now and then.
class StandardError final : public train::Reporter {
 public:
  ~StandardError() override { end_line(); }
  void message(std::string_view line) override {
    end_line();
    say(line);
  }
  void progress(std::string_view line) override {
    if (terminal_) {
      tell(fmt::format("\r{}\x1b[K", fitting(line)));
      open_ = true;
      return;
    }
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::seconds(30)) return;
    last_ = now;
    say(line);
  }

 private:
  // A line that reached the edge of the terminal would not renew itself.
  static std::string fitting(std::string_view line) {
    struct winsize size {};
    std::string text(line);
    if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return text;
    const size_t width = size.ws_col - 1U;
    constexpr std::string_view kTarget = " target";
    if (const size_t at = text.find(kTarget); text.size() > width && at != std::string::npos)
      text.erase(at, kTarget.size());
    return text.substr(0, width);
  }
  void end_line() {
    if (open_) say("");
    open_ = false;
  }

  const bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool open_ = false;  // the cursor stands behind a progress line
  std::chrono::steady_clock::time_point last_{};
};

int run(const Typed<train::TrainOptions>& options) {
  install_stop_handlers();
  StandardError reporter;
  const train::Outcome outcome = train::run(options, reporter, stop_training);
  reporter.message(outcome.reason);
  // As a shell reports a program that a signal ended: what follows in a script must not take the model for
  // finished.
  return outcome.kind == train::Outcome::Kind::interrupted ? 128 + stopping_signal.load() : 0;
}

}  // namespace

Run add_train(CLI::App& program) {
  CLI::App& app = add_command(
      program, {"train",
                "--train SRC TGT --valid SRC TGT --output DIR [OPTIONS]",
                "train a model from two parallel text files",
                "Trains a model; given again, the same command goes on where it was.",
                "gloss train --train train.en train.de --valid val.en val.de --output models/en-de",
                {"train", "valid", "output", "preset", "minutes", "max-updates", "max-epochs", "patience",
                 "vocab-size", "batch-tokens", "learning-rate", "warmup", "dropout", "label-smoothing",
                 "average", "seed", "threads", "paper"}});
  auto options = std::make_shared<Typed<train::TrainOptions>>();
  add_options(app, *options);
  return [options] { return run(*options); };
}

}  // namespace gloss::cli
