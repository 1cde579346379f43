// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

namespace ferry_test {

/// A child of this process that runs act() and ends with 0 if it returns true. It is ended after a minute, and
/// with this object.
class forked {
 public:
  template <class Act>
  explicit forked(const Act& act) {
    if (::pipe(reports_) != 0 || ::pipe(answers_) != 0) throw std::runtime_error("no pipe");
    std::fflush(nullptr);
    process_ = ::fork();
    if (process_ < 0) throw std::runtime_error("no process");
    if (process_ != 0) return;
    ::alarm(60);
    bool well = false;
    try {
      well = act(*this);
    } catch (const std::exception& lost) {
      std::fprintf(stderr, "child: %s\n", lost.what());
    }
    std::fflush(nullptr);
    std::_Exit(well ? 0 : 1);
  }
  forked(const forked&) = delete;
  forked& operator=(const forked&) = delete;
  ~forked() {
    end(SIGKILL);
    for (const int descriptor : {reports_[0], reports_[1], answers_[0], answers_[1]}) ::close(descriptor);
  }

  /// In the child: tells the parent something, and waits until the parent has answered.
  /// @{
  template <class T>
  void say(const T& value) {
    send(reports_[1], &value, sizeof value);
  }
  void say() { say('x'); }
  void await() { static_cast<void>(heard<char>(answers_[0])); }
  /// @}
  /// In the parent: what the child has said, and the answer.
  /// @{
  template <class T = char>
  T hear() {
    return heard<T>(reports_[0]);
  }
  void answer() { send(answers_[1], "y", 1); }
  /// @}

  /// True if the child has ended well.
  bool ended_well() {
    const int status = end(0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  void kill() { end(SIGKILL); }
  [[nodiscard]] pid_t process() const { return process_; }

 private:
  int end(int signal) {
    int status = 1;
    if (process_ <= 0) return status;
    if (signal != 0) ::kill(process_, signal);
    ::waitpid(process_, &status, 0);
    process_ = 0;
    return status;
  }
  static void send(int descriptor, const void* data, std::size_t bytes) {
    if (::write(descriptor, data, bytes) != static_cast<ssize_t>(bytes))
      throw std::runtime_error("no one hears");
  }
  template <class T>
  T heard(int descriptor) {
    T value{};
    if (::read(descriptor, &value, sizeof value) != static_cast<ssize_t>(sizeof value))
      throw std::runtime_error("no one speaks");
    return value;
  }

  int reports_[2], answers_[2];
  pid_t process_ = 0;
};

}  // namespace ferry_test
