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
    if (::pipe(said_) != 0 || ::pipe(told_) != 0) throw std::runtime_error("no pipe");
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
    for (const int each : {said_[0], said_[1], told_[0], told_[1]}) ::close(each);
  }

  /// In the child: tells the parent something, and waits until the parent has answered.
  /// @{
  template <class T>
  void say(const T& value) {
    send(said_[1], &value, sizeof value);
  }
  void say() { say('x'); }
  void await() { static_cast<void>(heard<char>(told_[0])); }
  /// @}
  /// In the parent: what the child has said, and the answer.
  /// @{
  template <class T = char>
  T hear() {
    return heard<T>(said_[0]);
  }
  void answer() { send(told_[1], "y", 1); }
  /// @}

  /// Whether the child has ended well.
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
  static void send(int to, const void* data, std::size_t bytes) {
    if (::write(to, data, bytes) != static_cast<ssize_t>(bytes)) throw std::runtime_error("no one hears");
  }
  template <class T>
  T heard(int from) {
    T value{};
    if (::read(from, &value, sizeof value) != static_cast<ssize_t>(sizeof value))
      throw std::runtime_error("no one speaks");
    return value;
  }

  int said_[2], told_[2];
  pid_t process_ = 0;
};

}  // namespace ferry_test
