// SPDX-License-Identifier: Apache-2.0
#include <ferry/runtime/detail/joint_writes.hpp>

namespace ferry::detail {

namespace {

/// The calls that begin at the next before_writing() of this thread.
struct waiting_calls {
  int first;
  int last;
  function_ref<void(int)> verb;
  waiting_calls* outer;  ///< begin after these
  bool begun = false;
};
thread_local waiting_calls* waiting = nullptr;

void begin(waiting_calls& calls) {
  calls.begun = true;
  waiting = calls.outer;
  write_jointly(calls.first, calls.last, calls.verb);
}

/// Ends the wait of calls that an exception passes.
class wait_of {
 public:
  explicit wait_of(waiting_calls& calls) : calls_(calls) { waiting = &calls; }
  ~wait_of() {
    if (!calls_.begun) waiting = calls_.outer;
  }
  wait_of(const wait_of&) = delete;
  wait_of& operator=(const wait_of&) = delete;

 private:
  const waiting_calls& calls_;
};

}  // namespace

void write_jointly(int first, int last, function_ref<void(int)> verb) {
  if (first == last) return before_writing();
  waiting_calls rest{first + 1, last, verb, waiting};
  const wait_of wait(rest);
  verb(first);
  if (!rest.begun) begin(rest);  // the verb had nothing to write
}

void before_writing() {
  if (waiting != nullptr) begin(*waiting);
}

}  // namespace ferry::detail
