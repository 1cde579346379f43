// SPDX-License-Identifier: Apache-2.0
#include "socket_transport.hpp"

#include <ferry/error.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ferry::detail {

namespace {

/// The first message of a rank that connects.
struct greeting {
  std::uint64_t magic = 0x796c697772726566ull;
  std::uint64_t header_bytes = sizeof(call_header);
  std::int32_t rank = 0, size = 0;
};

/// The address of a rank: a name without a file, gone with the socket.
socklen_t address_of(const std::string& key, int rank, sockaddr_un& address) {
  const std::string name = "ferry." + std::to_string(::getuid()) + "." + key + "." + std::to_string(rank);
  if (name.size() + 1 > sizeof address.sun_path)
    throw invalid_argument("ferry::communicator::node: the key '" + key + "' is too long");
  address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

int left_ms(message_transport::clock::time_point until) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(until - message_transport::clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 1000));
}

/// poll. With `watches` at first without sleep: ranks mostly come within microseconds of each other, and the
/// system wakes a thread some ten microseconds late.
int poll_soon(std::vector<pollfd>& waits, message_transport::clock::time_point until, bool watches) {
  constexpr std::chrono::microseconds moment{50};
  for (const auto end = message_transport::clock::now() + moment;
       watches && message_transport::clock::now() < end;)
    if (const int ready = ::poll(waits.data(), waits.size(), 0); ready != 0) return ready;
  return ::poll(waits.data(), waits.size(), left_ms(until));
}

/// True if the other end runs as the same user.
bool is_own_user(int socket) {
  ucred who{};
  socklen_t length = sizeof who;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && who.uid == ::getuid();
}

/// True if the other end takes this one into its group.
bool answered(int socket, message_transport::clock::time_point until) {
  char answer = 0;
  pollfd reads{socket, POLLIN, 0};
  while (::poll(&reads, 1, left_ms(until)) != 1)
    if (message_transport::clock::now() >= until) return false;
  return ::recv(socket, &answer, 1, MSG_DONTWAIT) == 1;
}

}  // namespace

socket_transport::socket_transport(int rank, int size, const std::string& key,
                                   std::chrono::nanoseconds deadline)
    : message_transport(deadline),
      watches_(std::thread::hardware_concurrency() >= static_cast<unsigned>(size)),
      peers_(static_cast<std::size_t>(size), -1) {
  become(rank, size);
  try {
    connect_all(key, clock::now() + deadline);
  } catch (...) {
    close_all();
    throw;
  }
}

socket_transport::~socket_transport() { close_all(); }

void socket_transport::close_all() noexcept {
  for (int& peer : peers_)
    if (peer >= 0) ::close(std::exchange(peer, -1));
}

/// Connects to a lower rank, which may not have begun to listen.
int socket_transport::to_rank(const std::string& key, int peer, clock::time_point until) {
  sockaddr_un address;
  const socklen_t length = address_of(key, peer, address);
  for (;;) {
    const int connection = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection < 0) stop(std::string("no socket: ") + std::strerror(errno));
    if (::connect(connection, reinterpret_cast<const sockaddr*>(&address), length) == 0) return connection;
    ::close(connection);
    if (clock::now() >= until)
      stop("rank " + std::to_string(peer) + " of the key '" + key + "' has not come");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void socket_transport::connect_all(const std::string& key, clock::time_point until) {
  struct listener {
    int socket = -1;
    ~listener() {
      if (socket >= 0) ::close(socket);
    }
  } door;
  sockaddr_un address;
  const socklen_t length = address_of(key, rank(), address);
  door.socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (door.socket < 0 || ::bind(door.socket, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(door.socket, size()) != 0)
    stop("rank " + std::to_string(rank()) + " of the key '" + key +
         "' can't be reached: " + std::strerror(errno));
  const greeting own_greeting{.rank = rank(), .size = size()};
  const auto keep = [&](int socket, int peer) {
    peers_[static_cast<std::size_t>(peer)] = socket;
    ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
  };
  for (int r = 0; r < rank(); ++r) {
    for (;;) {  // until it answers: the socket may be one that it is about to close, of a group made before
      const int socket = to_rank(key, r, until);
      if (!is_own_user(socket)) {
        ::close(socket);
        stop("rank " + std::to_string(r) + " of the key '" + key + "' is of another user");
      }
      if (::send(socket, &own_greeting, sizeof own_greeting, MSG_NOSIGNAL) ==
              static_cast<ssize_t>(sizeof own_greeting) &&
          answered(socket, until)) {
        keep(socket, r);
        break;
      }
      ::close(socket);
      if (clock::now() >= until) stop("rank " + std::to_string(r) + " of the key '" + key + "' has not come");
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  for (int left = size() - 1 - rank(); left > 0;) {
    pollfd wait{door.socket, POLLIN, 0};
    ::poll(&wait, 1, left_ms(until));
    const int socket = ::accept4(door.socket, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) {
      if (clock::now() >= until)
        stop(std::to_string(left) + " of the " + std::to_string(size()) + " ranks of the key '" + key +
             "' have not come to rank " + std::to_string(rank()));
      continue;
    }
    greeting peer_greeting;
    pollfd reads{socket, POLLIN, 0};
    // A rank sends its greeting at once and in one piece.
    const bool spoke = is_own_user(socket) && ::poll(&reads, 1, left_ms(until)) == 1 &&
                       ::recv(socket, &peer_greeting, sizeof peer_greeting, MSG_DONTWAIT) ==
                           static_cast<ssize_t>(sizeof peer_greeting);
    const bool fits = spoke && peer_greeting.magic == own_greeting.magic &&
                      peer_greeting.header_bytes == own_greeting.header_bytes &&
                      peer_greeting.size == size() && peer_greeting.rank > rank() &&
                      peer_greeting.rank < size() && peers_[static_cast<std::size_t>(peer_greeting.rank)] < 0;
    if (!fits || ::send(socket, "y", 1, MSG_NOSIGNAL) != 1) {  // no rank of this group
      ::close(socket);
      continue;
    }
    keep(socket, peer_greeting.rank);
    --left;
  }
}

bool socket_transport::pump(std::vector<outgoing_part>& outgoing, std::vector<incoming_part>& incoming,
                            clock::time_point until, int& lost) {
  std::vector<pollfd> waits;
  for (;;) {
    waits.clear();
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      const int events = (outgoing[r].bytes != 0 ? POLLOUT : 0) | (incoming[r].bytes != 0 ? POLLIN : 0);
      waits.push_back({events != 0 ? peers_[r] : -1, static_cast<short>(events), 0});
    }
    if (std::all_of(waits.begin(), waits.end(), [](const pollfd& wait) { return wait.fd < 0; })) return true;
    if (clock::now() >= until) return false;
    if (poll_soon(waits, until, watches_) < 0 && errno != EINTR)
      stop(std::string("poll failed: ") + std::strerror(errno));
    for (std::size_t r = 0; r < peers_.size(); ++r) {
      if (waits[r].fd < 0 || waits[r].revents == 0) continue;
      const auto may_retry = [] { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; };
      if (incoming[r].bytes != 0) {
        const ssize_t count = ::recv(peers_[r], incoming[r].data, incoming[r].bytes, 0);
        if (count > 0)
          incoming[r] = {incoming[r].data + count, incoming[r].bytes - static_cast<std::size_t>(count)};
        else if (count == 0 || (!may_retry() && errno != ECONNRESET))  // after a reset there may be data left
          stop("the process of rank " + std::to_string(r) + " has ended");
      }
      if (outgoing[r].bytes != 0) {
        const ssize_t count = ::send(peers_[r], outgoing[r].data, outgoing[r].bytes, MSG_NOSIGNAL);
        if (count > 0)
          outgoing[r] = {outgoing[r].data + count, outgoing[r].bytes - static_cast<std::size_t>(count)};
        else if (!may_retry())  // what it has sent before it ended may still be read
          outgoing[r].bytes = 0, lost = static_cast<int>(r);
      }
    }
  }
}

std::string socket_transport::swap_headers(const call_header& header, std::vector<call_header>& headers,
                                           clock::time_point until) {
  std::vector<outgoing_part> outgoing(peers_.size());
  std::vector<incoming_part> incoming(peers_.size());
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    if (peers_[r] < 0) continue;
    outgoing[r] = {reinterpret_cast<const std::byte*>(&header), sizeof header};
    incoming[r] = {reinterpret_cast<std::byte*>(&headers[r]), sizeof header};
  }
  int lost = -1;
  if (pump(outgoing, incoming, until, lost)) return {};
  std::string missing;
  for (std::size_t r = 0; r < peers_.size(); ++r)
    if (incoming[r].bytes != 0) missing += (missing.empty() ? "rank " : ", rank ") + std::to_string(r);
  return missing.empty() ? "a rank that does not receive" : missing;
}

void socket_transport::send_last(const call_header& last, clock::time_point until) {
  std::vector<outgoing_part> outgoing(peers_.size());
  std::vector<incoming_part> incoming(peers_.size());
  for (std::size_t r = 0; r < peers_.size(); ++r)
    if (peers_[r] >= 0) outgoing[r] = {reinterpret_cast<const std::byte*>(&last), sizeof last};
  int lost = -1;
  (void)pump(outgoing, incoming, until, lost);
}

bool socket_transport::move_parts(std::span<const outgoing_part> outgoing,
                                  std::span<const incoming_part> incoming, clock::time_point until) {
  std::vector<outgoing_part> leaving(outgoing.begin(), outgoing.end());
  std::vector<incoming_part> coming(incoming.begin(), incoming.end());
  leaving[static_cast<std::size_t>(rank())].bytes = 0;
  coming[static_cast<std::size_t>(rank())].bytes = 0;
  int lost = -1;
  // A mark goes before the data: a rank that has given up since it sent its header sends another one instead.
  const std::uint64_t mark = call_header::data_mark;
  std::vector<std::uint64_t> marks(peers_.size(), mark);
  std::vector<outgoing_part> to_mark(peers_.size());
  std::vector<incoming_part> from_mark(peers_.size());
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    if (leaving[r].bytes != 0) to_mark[r] = {reinterpret_cast<const std::byte*>(&mark), sizeof mark};
    if (coming[r].bytes != 0) from_mark[r] = {reinterpret_cast<std::byte*>(&marks[r]), sizeof mark};
  }
  const bool marked = pump(to_mark, from_mark, until, lost);
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    if (from_mark[r].bytes != 0 || marks[r] == mark) continue;
    call_header last;
    std::vector<outgoing_part> none(peers_.size());
    std::vector<incoming_part> rest(peers_.size());
    rest[r] = {reinterpret_cast<std::byte*>(&last) + sizeof mark, sizeof last - sizeof mark};
    if (!pump(none, rest, until, lost)) last.call_kind = call_header::kind::abort;
    stop_by(last);
  }
  const bool ended = marked && pump(leaving, coming, until, lost);
  if (lost >= 0) stop("the process of rank " + std::to_string(lost) + " has ended");
  return ended;
}

}  // namespace ferry::detail
