// SPDX-License-Identifier: Apache-2.0
#include "socket_transport.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>

namespace ferry::detail {

namespace {

/// One byte, with room for a descriptor next to it.
struct descriptor_message {
  char byte = 'd';
  iovec part{&byte, 1};
  alignas(cmsghdr) unsigned char room[CMSG_SPACE(sizeof(int))]{};
  msghdr message{};

  descriptor_message() {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = room;
    message.msg_controllen = sizeof room;
  }
  descriptor_message(const descriptor_message&) = delete;
  descriptor_message& operator=(const descriptor_message&) = delete;

  void put(int descriptor) {
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  }
  /// -1 if there is none.
  [[nodiscard]] int take() {
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    int descriptor = -1;
    if (head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
      std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
    return descriptor;
  }
};

}  // namespace

/// After the headers nothing is under way between the ranks, so a single byte carries the descriptor.
int socket_transport::move_descriptor(int owner, int descriptor, clock::time_point until) {
  const auto may_retry = [] { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; };
  const auto await = [&](int peer, short events) {
    if (clock::now() >= until) stop("a file descriptor did not arrive within the deadline");
    pollfd wait{peers_[static_cast<std::size_t>(peer)], events, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - clock::now()).count();
    ::poll(&wait, 1, static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 1000)));
  };
  const auto ended = [&](int peer) { stop("the process of rank " + std::to_string(peer) + " has ended"); };
  if (rank() == owner) {
    for (int r = 0; r < size(); ++r) {
      if (r == rank()) continue;
      descriptor_message message;
      message.put(descriptor);
      while (::sendmsg(peers_[static_cast<std::size_t>(r)], &message.message, MSG_NOSIGNAL) != 1) {
        if (!may_retry()) ended(r);
        await(r, POLLOUT);
      }
    }
    return -1;
  }
  for (;;) {
    descriptor_message message;
    const ssize_t count =
        ::recvmsg(peers_[static_cast<std::size_t>(owner)], &message.message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (count == 1) {
      const int received = message.take();
      if (received < 0 && message.byte != 'd') stop("rank " + std::to_string(owner) + " has left");
      return received;  // -1 if this process may open no more files
    }
    if (count == 0 || !may_retry()) ended(owner);
    await(owner, POLLIN);
  }
}

}  // namespace ferry::detail
