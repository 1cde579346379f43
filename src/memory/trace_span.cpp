// SPDX-License-Identifier: Apache-2.0
#include <ferry/memory/detail/trace_span.hpp>

#include "trace_home.hpp"
#include "trace_text.hpp"

#include <ferry/memory/detail/timed_work.hpp>

#include <cstdint>
#include <new>
#include <string_view>

namespace ferry::detail {

struct trace_span::recording {
  unsigned who;
  const char* category;
  std::int64_t begin = 0;
  trace_name name{};
  trace_arguments arguments{};
};

void trace_span::note(std::string_view key, std::string_view value) {
  if (recording_ != nullptr) recording_->arguments.append_member(key, value);
}

void trace_span::note(std::string_view key, std::int64_t value) {
  if (recording_ != nullptr) recording_->arguments.append_member(key, value);
}

void trace_span::begin(unsigned who, std::string_view first, std::string_view second,
                       const char* category) noexcept {
  recording_ = new (std::nothrow) recording{who, category};
  if (recording_ == nullptr) return;  // no memory for the event: the work matters more
  recording_->name.append_escaped(first);
  recording_->name.append_escaped(second);
  if ((who & trace_ranges) != 0) trace_home::get().ranges.load()->begin(recording_->name.data);
  recording_->begin = trace_now();
}

void trace_span::end() noexcept {
  const std::int64_t now = trace_now();
  if ((recording_->who & trace_ranges) != 0) trace_home::get().ranges.load()->end();
  if ((recording_->who & trace_file) != 0) try {
      trace_home::get().log.load()->add(recording_->name, recording_->category, recording_->begin, now,
                                        recording_->arguments);
    } catch (...) {  // no memory for the event, as above
    }
  delete recording_;
}

}  // namespace ferry::detail
