// A server of streamed completions whose latencies are known: it takes them itself, and tells them at /truth.
//
// Usage: server PORT TTFT_MS JITTER_MS ITL_MS
//
// One thread, epoll, a wheel of timers of one millisecond; loopback alone. The first token leaves TTFT_MS plus up to
// JITTER_MS after the request is whole, each further one ITL_MS later. GET /truth gives what really passed between the
// request's last byte and the first token's write, and per token after that, in microseconds, and forgets it.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { WHEEL = 1 << 16, MOST_TRUTHS = 1 << 20, EVENTS = 512, SLACK = 1 << 17 };

typedef struct Connection {
  int fd, left, total, is_active;
  char *in, *out;
  size_t in_length, in_room, out_length, out_sent, out_room;
  long asked_us, first_us, due_ms;
  struct Connection *next, **at;  // in a slot of the wheel
} Connection;

static Connection *wheel[WHEEL];
static double truths[2][MOST_TRUTHS];  // to the first token; per token after it
static long truth_counts[2], now_ms, ttft_ms, jitter_ms, itl_ms;
static int poll_fd;

static const char PIECE[] =
    "data: {\"id\":\"cmpl-0123456789abcdef0123456789abcdef\",\"object\":\"text_completion\",\"created\":1795000000,"
    "\"model\":\"known\",\"choices\":[{\"index\":0,\"text\":\" self\",\"logprobs\":null,\"finish_reason\":null,"
    "\"stop_reason\":null,\"token_ids\":null}],\"usage\":null}\n\n";

static const char MODELS[] = "{\"object\":\"list\",\"data\":[{\"id\":\"known\",\"object\":\"model\",\"max_model_len\":32768}]}";

static long clock_us(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * 1000000L + at.tv_nsec / 1000;
}

static void disarm(Connection *c) {
  if (!c->at) return;
  *c->at = c->next;
  if (c->next) c->next->at = c->at;
  c->at = NULL;
}

static void arm(Connection *c, long due_ms) {
  disarm(c);
  c->due_ms = due_ms > now_ms ? due_ms : now_ms + 1;
  Connection **slot = &wheel[c->due_ms % WHEEL];
  c->next = *slot;
  if (c->next) c->next->at = &c->next;
  *slot = c;
  c->at = slot;
}

static void hang_up(Connection *c) {
  disarm(c);
  close(c->fd);
  free(c->in);
  free(c->out);
  free(c);
}

static void watch(Connection *c, unsigned for_what) {
  struct epoll_event event = {.events = for_what, .data.ptr = c};
  epoll_ctl(poll_fd, EPOLL_CTL_MOD, c->fd, &event);
}

static void put(Connection *c, const char *text, size_t length) {
  if (c->out_length + length > c->out_room) {
    c->out_room = (c->out_length + length) * 2 + 1024;
    c->out = realloc(c->out, c->out_room);
  }
  memcpy(c->out + c->out_length, text, length);
  c->out_length += length;
}

static void put_chunk(Connection *c, const char *text, size_t length) {
  char size[32];
  put(c, size, (size_t)sprintf(size, "%zx\r\n", length));
  put(c, text, length);
  put(c, "\r\n", 2);
}

// -1 where the other side is gone.
static int flush_out(Connection *c) {
  while (c->out_sent < c->out_length) {
    ssize_t sent = send(c->fd, c->out + c->out_sent, c->out_length - c->out_sent, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN) return -1;
      watch(c, EPOLLIN | EPOLLOUT);
      return 0;
    }
    c->out_sent += (size_t)sent;
  }
  c->out_sent = c->out_length = 0;
  return 0;
}

static void reply(Connection *c, const char *body, size_t length) {
  char head[128];
  put(c, head, (size_t)sprintf(head, "HTTP/1.1 200 OK\r\ncontent-length: %zu\r\n\r\n", length));
  put(c, body, length);
}

static int by_size(const void *one, const void *other) {
  double a = *(const double *)one, b = *(const double *)other;
  return (a > b) - (a < b);
}

// Of sorted truths, between the two nearest, as the client's own quantiles are.
static double quantile(int of, double share) {
  long count = truth_counts[of];
  if (!count) return 0;
  double at = share * (double)(count - 1);
  long below = (long)at, above = below + 1 < count ? below + 1 : below;
  return truths[of][below] + (truths[of][above] - truths[of][below]) * (at - (double)below);
}

static void note(int of, double truth) {
  if (truth_counts[of] < MOST_TRUTHS) truths[of][truth_counts[of]++] = truth;
}

static void tell_truth(Connection *c) {
  char body[256];
  for (int of = 0; of < 2; of++) qsort(truths[of], (size_t)truth_counts[of], sizeof **truths, by_size);
  int length = sprintf(body,
                       "{\"count\":%ld,\"ttft_p50_us\":%.1f,\"ttft_p99_us\":%.1f,\"tpot_p50_us\":%.1f,\"tpot_p99_us\":%.1f}",
                       truth_counts[0], quantile(0, 0.50), quantile(0, 0.99), quantile(1, 0.50), quantile(1, 0.99));
  truth_counts[0] = truth_counts[1] = 0;
  reply(c, body, (size_t)length);
}

static void next_token(Connection *c) {
  put_chunk(c, PIECE, sizeof PIECE - 1);
  if (c->left == c->total) {
    c->first_us = clock_us();
    note(0, (double)(c->first_us - c->asked_us));
  }
  c->left--;
  if (!c->left) {
    if (c->total > 1) note(1, (double)(clock_us() - c->first_us) / (c->total - 1));
    char usage[256];
    int length = sprintf(usage,
                         "data: {\"id\":\"cmpl-0\",\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"total_tokens\":%d,"
                         "\"completion_tokens\":%d}}\n\n", 1, 1 + c->total, c->total);
    put_chunk(c, usage, (size_t)length);
    put_chunk(c, "data: [DONE]\n\n", 14);
    put(c, "0\r\n\r\n", 5);
    c->is_active = 0;
  }
  if (flush_out(c) < 0) hang_up(c);
  else if (c->left) arm(c, c->due_ms + itl_ms);
}

static void begin(Connection *c, const char *body) {
  static const char HEAD[] =
      "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";
  const char *asked = strstr(body, "\"max_tokens\":");
  c->total = c->left = asked ? atoi(asked + 13) : 16;
  c->is_active = 1;
  c->asked_us = clock_us();
  put(c, HEAD, sizeof HEAD - 1);
  arm(c, c->asked_us / 1000 + ttft_ms + (jitter_ms ? random() % jitter_ms : 0));
}

// All whole requests that have come. -1 where the other side is gone.
static int read_requests(Connection *c) {
  while (!c->is_active && c->in_length) {
    char *end = memmem(c->in, c->in_length, "\r\n\r\n", 4);
    if (!end) return 0;
    size_t head = (size_t)(end - c->in) + 4, body = 0;
    char *named = strcasestr(c->in, "content-length:");
    if (named && named < end) body = strtoul(named + 15, NULL, 10);
    if (c->in_length < head + body) return 0;
    char kept = c->in[head + body];
    c->in[head + body] = 0;
    if (!strncmp(c->in, "POST ", 5)) begin(c, c->in + head);
    else if (!strncmp(c->in, "GET /truth", 10)) tell_truth(c);
    else if (!strncmp(c->in, "GET /v1/models", 14)) reply(c, MODELS, sizeof MODELS - 1);
    else reply(c, "", 0);
    c->in[head + body] = kept;
    c->in_length -= head + body;
    memmove(c->in, c->in + head + body, c->in_length);
    c->in[c->in_length] = 0;
    if (flush_out(c) < 0) return -1;
  }
  return 0;
}

static int receive(Connection *c) {
  for (;;) {
    if (c->in_room - c->in_length < SLACK + 1) {
      c->in_room = c->in_room * 2 + 2 * SLACK;
      c->in = realloc(c->in, c->in_room);
    }
    ssize_t got = recv(c->fd, c->in + c->in_length, SLACK, 0);
    if (got < 0 && errno == EAGAIN) return read_requests(c);
    if (got <= 0) return -1;
    c->in_length += (size_t)got;
    c->in[c->in_length] = 0;
  }
}

static void accept_all(int listener) {
  int fd, on = 1;
  while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    Connection *c = calloc(1, sizeof *c);
    c->fd = fd;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event);
  }
}

static void pass_time(void) {
  for (long until = clock_us() / 1000; now_ms < until;) {
    now_ms++;
    for (Connection *c = wheel[now_ms % WHEEL], *next; c; c = next) {
      next = c->next;
      if (c->due_ms > now_ms) continue;
      disarm(c);
      next_token(c);
    }
  }
}

int main(int count, char **words) {
  if (count != 5) return 2;
  ttft_ms = atol(words[2]), jitter_ms = atol(words[3]), itl_ms = atol(words[4]);
  signal(SIGPIPE, SIG_IGN);
  int on = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  struct sockaddr_in here = {AF_INET, htons((unsigned short)atoi(words[1])), {htonl(INADDR_LOOPBACK)}, {0}};
  if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 4096)) return perror("bind"), 1;
  poll_fd = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, events[EVENTS];
  epoll_ctl(poll_fd, EPOLL_CTL_ADD, listener, &event);
  for (now_ms = clock_us() / 1000;;) {
    int ready = epoll_wait(poll_fd, events, EVENTS, 1);
    for (int i = 0; i < ready; i++) {
      Connection *c = events[i].data.ptr;
      if (!c) accept_all(listener);
      else if (events[i].events & EPOLLOUT && (watch(c, EPOLLIN), flush_out(c) < 0)) hang_up(c);
      else if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR) && receive(c) < 0) hang_up(c);
    }
    pass_time();
  }
}
