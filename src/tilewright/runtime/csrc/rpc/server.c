/* tw-rpc-server: runs what a client of Tilewright's RPC sends, on a machine without Python.
 *
 * One process accepts connections. A connection that has proved that it knows the key gets a child process with a folder
 * of its own; the parent ends the child at its time limit, and removes the folder. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "addresses.h"
#include "pending.h"
#include "serve.h"
#include "tracker.h"

#define MOST_PENDING 64
#define MOST_SESSIONS 64
#define SECONDS_TO_OPEN 10
#define SECONDS_OF_GRACE 1
#define SECOND ((uint64_t)1000000000)

typedef struct {
  const char *host, *port, *key_file, *parent_folder, *tracker, *own_host;
  uint64_t most_folder;
  int most_sessions;
  int reads, writes; /* of the one session; -1: listen */
  ServerRules rules;
} Options;

typedef struct {
  pid_t process;
  uint64_t deadline; /* 0: none */
  int connection;    /* only to see when the client is gone; -1: not watched */
  char folder[512];
} Running;

static Options options = {.host = "127.0.0.1",
                          .port = "9090",
                          .parent_folder = "/tmp",
                          .own_host = "",
                          .most_folder = (uint64_t)4 << 30,
                          .most_sessions = 8,
                          .reads = -1,
                          .rules = {.label = "", .most_bulk = (uint64_t)1 << 30}};
static uint8_t key[NOISE_KEY_BYTES];
static Pending* waiting[MOST_PENDING];
static Running running[MOST_SESSIONS];
static Tracker tracker;
static int num_running;
static int wake_up[2];
static volatile sig_atomic_t is_ending;

static int complain(const char* message, const char* detail) {
  fprintf(stderr, "tw-rpc-server: %s%s%s\n", message, detail[0] != 0 ? ": " : "", detail);
  return -1;
}

/* ---- options ---- */

static const char usage[] =
    "usage: tw-rpc-server [OPTIONS]\n"
    "       tw-rpc-server [OPTIONS] READS WRITES    one session over two open file descriptors\n"
    "  --host ADDRESS         where to listen (127.0.0.1); any other machine needs a key\n"
    "  --port NUMBER          (9090); 0: one that is free\n"
    "  --key-file FILE        64 hexadecimal digits, as `tilewright rpc keygen` makes them\n"
    "  --label NAME, --key NAME   the kind of device, by which clients ask for it; not a secret\n"
    "  --tracker HOST:PORT    offer the device there, to one client at a time\n"
    "  --custom-addr HOST     where clients find this server, if not where the tracker sees it\n"
    "  --folder PATH          where the folders of sessions are made (/tmp)\n"
    "  --folder-bytes NUMBER  the most that a session may upload (4 GiB)\n"
    "  --bulk-bytes NUMBER    the largest array or file (1 GiB)\n"
    "  --session-seconds N    the longest session\n"
    "  --sessions N           how many at once (8)\n"
    "Without --key-file, TILEWRIGHT_RPC_KEY_FILE names the file, or TILEWRIGHT_RPC_KEY is the key.\n";

static int digit_of(int character) {
  if (character >= '0' && character <= '9') return character - '0';
  character |= 0x20;
  return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

static int parse_key(const char* text) {
  int digits = 0;
  memset(key, 0, sizeof key);
  text += strspn(text, " \t\r\n");
  for (; digit_of((unsigned char)*text) >= 0; ++text) {
    if (digits == 2 * NOISE_KEY_BYTES) return -1;
    key[digits / 2] = (uint8_t)(key[digits / 2] << 4 | digit_of((unsigned char)*text));
    ++digits;
  }
  text += strspn(text, " \t\r\n");
  return *text == 0 && digits == 2 * NOISE_KEY_BYTES ? 0 : -1;
}

/* The key from its file or, without one, from the environment. */
static int read_key(void) {
  char text[256] = "";
  if (options.key_file == NULL) options.key_file = getenv("TILEWRIGHT_RPC_KEY_FILE");
  if (options.key_file != NULL) {
    int descriptor = open(options.key_file, O_RDONLY | O_CLOEXEC);
    struct stat found;
    if (descriptor < 0 || fstat(descriptor, &found) != 0) return complain("cannot read the key file", options.key_file);
    if ((found.st_mode & 077) != 0) return complain("others than its owner can read the key file; chmod 600", options.key_file);
    ssize_t size = read(descriptor, text, sizeof text - 1);
    close(descriptor);
    text[size > 0 ? size : 0] = 0;
  } else if (getenv("TILEWRIGHT_RPC_KEY") != NULL) {
    snprintf(text, sizeof text, "%s", getenv("TILEWRIGHT_RPC_KEY"));
    unsetenv("TILEWRIGHT_RPC_KEY"); /* what is loaded need not know it */
  } else {
    return 0;
  }
  int status = parse_key(text);
  wipe(text, sizeof text);
  if (status != 0) return complain("a key is 64 hexadecimal digits", options.key_file != NULL ? options.key_file : "TILEWRIGHT_RPC_KEY");
  options.rules.key = key;
  return 0;
}

static int parse_number(const char* text, uint64_t most, uint64_t* out) {
  char* end;
  errno = 0;
  unsigned long long value = strtoull(text, &end, 10);
  if (errno != 0 || end == text || *end != 0 || text[0] == '-' || value > most) return complain("not a number in its range", text);
  *out = value;
  return 0;
}

static bool is_number(const char* text) { return text[0] != 0 && strlen(text) < 6 && text[strspn(text, "0123456789")] == 0; }

static int parse_options(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    const char* name = arguments[i];
    uint64_t number = 0;
    if (i + 2 == count && is_number(name) && is_number(arguments[i + 1])) {
      options.reads = atoi(name);
      options.writes = atoi(arguments[i + 1]);
      return 0;
    }
    if (strcmp(name, "--help") == 0) {
      fputs(usage, stdout);
      exit(0);
    }
    const char* value = ++i < count ? arguments[i] : NULL;
    if (value == NULL) return complain("an option is unknown, or has no value", name);
    if (strcmp(name, "--host") == 0) {
      options.host = value;
    } else if (strcmp(name, "--port") == 0) {
      options.port = value;
    } else if (strcmp(name, "--key-file") == 0) {
      options.key_file = value;
    } else if (strcmp(name, "--label") == 0 || strcmp(name, "--key") == 0) {
      options.rules.label = value;
    } else if (strcmp(name, "--tracker") == 0) {
      options.tracker = value;
      if (tracker_parse(&tracker, value) != 0) return -1;
    } else if (strcmp(name, "--custom-addr") == 0) {
      options.own_host = value;
    } else if (strcmp(name, "--folder") == 0) {
      options.parent_folder = value;
    } else if (strcmp(name, "--folder-bytes") == 0) {
      if (parse_number(value, UINT64_MAX / 4, &options.most_folder) != 0) return -1;
    } else if (strcmp(name, "--bulk-bytes") == 0) {
      if (parse_number(value, SIZE_MAX / 4, &options.rules.most_bulk) != 0) return -1;
    } else if (strcmp(name, "--session-seconds") == 0) {
      if (parse_number(value, UINT32_MAX, &number) != 0) return -1;
      options.rules.most_seconds = (uint32_t)number;
    } else if (strcmp(name, "--sessions") == 0) {
      if (parse_number(value, MOST_SESSIONS, &number) != 0) return -1;
      options.most_sessions = (int)number;
    } else {
      return complain("unknown option; --help lists them", name);
    }
  }
  size_t label = strlen(options.rules.label);
  if (options.tracker != NULL && (label == 0 || label > MOST_LABEL)) {
    return complain("a server at a tracker needs --key NAME, of at most 200 bytes, by which clients ask for the device", options.tracker);
  }
  return 0;
}

/* ---- sessions ---- */

/* In the child: everything of the server is closed, and the session served. */
static void run_session(Channel* channel, const Folder* folder) {
  setpgid(0, 0);
  struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  signal(SIGCHLD, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  signal(SIGINT, SIG_DFL);
  wipe(key, sizeof key);
  Session session = {.channel = channel, .folder = *folder, .most_bulk = options.rules.most_bulk};
  if (chdir(folder->path) != 0) _exit(1);
  serve(&session);
  _exit(0);
}

/* Starts the child of a session; false if there is no folder or process for it. */
static bool start_session(Pending* pending, uint32_t seconds, int listener) {
  Folder folder;
  if (folder_create(&folder, options.parent_folder, options.most_folder) != 0) {
    complain("no folder for a session", tilewright_error_message());
    tilewright_clear_error();
    return false;
  }
  pid_t process = fork();
  if (process == 0) {
    if (listener >= 0) close(listener);
    close(wake_up[0]);
    close(wake_up[1]);
    if (tracker.channel != NULL) {
      close(tracker.channel->reads);
      wipe(tracker.channel, sizeof *tracker.channel);
    }
    for (int i = 0; i < num_running; ++i) {
      if (running[i].connection >= 0) close(running[i].connection);
    }
    for (int i = 0; i < MOST_PENDING; ++i) {
      if (waiting[i] == NULL || waiting[i] == pending) continue;
      close(waiting[i]->channel.reads);
      wipe(waiting[i], sizeof *waiting[i]); /* the ciphers of other clients */
    }
    run_session(&pending->channel, &folder);
  }
  close(folder.descriptor);
  if (process < 0) {
    folder_remove(folder.path);
    return false;
  }
  setpgid(process, process);
  Running* made = &running[num_running++];
  made->process = process;
  made->deadline = seconds == 0 ? 0 : tw_now_nanoseconds() + seconds * SECOND;
  made->connection = -1;
  memcpy(made->folder, folder.path, sizeof made->folder);
  return true;
}

/* Takes back what ended sessions had; ends those whose time is over. */
static void look_after_sessions(bool ends_all) {
  uint64_t now = tw_now_nanoseconds();
  for (int i = 0; i < num_running;) {
    Running* one = &running[i];
    if (ends_all || (one->deadline != 0 && now >= one->deadline)) {
      kill(-one->process, SIGKILL);
      kill(one->process, SIGKILL);
    }
    if (waitpid(one->process, NULL, ends_all ? 0 : WNOHANG) == 0) {
      ++i;
      continue;
    }
    kill(-one->process, SIGKILL); /* what it left behind */
    folder_remove(one->folder);
    if (one->connection >= 0) close(one->connection);
    *one = running[--num_running];
    if (options.tracker != NULL && !ends_all) tracker_offer(&tracker);
  }
}

/* The client of a session is gone: it may finish what it can finish at once. */
static void client_gone(Running* one) {
  uint64_t end = tw_now_nanoseconds() + SECONDS_OF_GRACE * SECOND;
  close(one->connection);
  one->connection = -1;
  if (one->deadline == 0 || one->deadline > end) one->deadline = end;
}

/* ---- connections ---- */

static void drop(int index) {
  if (waiting[index]->channel.reads >= 0) close(waiting[index]->channel.reads);
  wipe(waiting[index], sizeof *waiting[index]);
  free(waiting[index]);
  waiting[index] = NULL;
}

/* A place for a new connection: a free one, otherwise that of the connection that waits longest. */
static int free_place(void) {
  int oldest = 0;
  for (int i = 0; i < MOST_PENDING; ++i) {
    if (waiting[i] == NULL) return i;
    if (waiting[i]->deadline < waiting[oldest]->deadline) oldest = i;
  }
  drop(oldest);
  return oldest;
}

static void accept_connection(int listener) {
  struct sockaddr_storage address;
  socklen_t size = sizeof address;
  int descriptor = accept4(listener, (struct sockaddr*)&address, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (descriptor < 0) return;
  bool is_local = is_loopback((struct sockaddr*)&address);
  Pending* pending = options.rules.key != NULL || is_local ? calloc(1, sizeof *pending) : NULL;
  if (pending == NULL) {
    close(descriptor);
    return;
  }
  int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  channel_begin(&pending->channel, descriptor, descriptor);
  pending->is_local = is_local;
  pending->deadline = tw_now_nanoseconds() + SECONDS_TO_OPEN * SECOND;
  waiting[free_place()] = pending;
}

/* Goes on with a connection that has something to read. */
static void advance(int index, int listener) {
  Pending* pending = waiting[index];
  uint32_t seconds = 0;
  pending->is_full = num_running >= options.most_sessions;
  if (!channel_receive(&pending->channel)) {
    drop(index);
    return;
  }
  Progress progress = pending_advance(pending, &options.rules, &seconds);
  if (progress == PENDING_WAITS) return;
  if (progress == PENDING_OPENED && num_running < options.most_sessions) {
    int descriptor = pending->channel.reads;
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
    if (start_session(pending, seconds, listener)) {
      running[num_running - 1].connection = descriptor;
      pending->channel.reads = -1;
      if (options.tracker != NULL) tracker_withdraw(&tracker);
    } else if (options.tracker != NULL) {
      tracker_offer(&tracker);
    }
  }
  drop(index);
}

/* ---- listening ---- */

static int listen_at(void) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE}, *found;
  const char* host = strcmp(options.host, "localhost") == 0 ? "127.0.0.1" : options.host;
  if (getaddrinfo(host, options.port, &hints, &found) != 0) return complain("not an address and a port", options.host);
  if (options.rules.key == NULL && !is_loopback(found->ai_addr)) {
    freeaddrinfo(found);
    return complain("without a key a server listens on 127.0.0.1 only: give it --key-file (tilewright rpc keygen)", options.host);
  }
  int on = 1, listener = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener >= 0) setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  bool is_bound = listener >= 0 && bind(listener, found->ai_addr, found->ai_addrlen) == 0 && listen(listener, 128) == 0;
  freeaddrinfo(found);
  if (!is_bound) return complain("cannot listen", strerror(errno));
  struct sockaddr_storage address;
  socklen_t size = sizeof address;
  char name[64], port[16];
  getsockname(listener, (struct sockaddr*)&address, &size);
  getnameinfo((struct sockaddr*)&address, size, name, sizeof name, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  printf("listening on %s port %s%s\n", name, port, options.rules.key != NULL ? ", with a key" : "");
  fflush(stdout);
  return listener;
}

static void on_signal(int signal_number) {
  int saved = errno;
  if (signal_number != SIGCHLD) is_ending = 1;
  (void)!write(wake_up[1], "", 1);
  errno = saved;
}

/* Milliseconds until something has to be looked at. */
static int time_to_wait(void) {
  uint64_t now = tw_now_nanoseconds(), next = now + 3600 * SECOND;
  for (int i = 0; i < MOST_PENDING; ++i) {
    if (waiting[i] != NULL && waiting[i]->deadline < next) next = waiting[i]->deadline;
  }
  for (int i = 0; i < num_running; ++i) {
    if (running[i].deadline != 0 && running[i].deadline < next) next = running[i].deadline;
  }
  if (options.tracker != NULL && tracker.next < next) next = tracker.next;
  return next <= now ? 0 : (int)((next - now) / 1000000 + 1);
}

/* Goes on with the connections that have something to read, and drops those that have waited too long. */
static void look_after_connections(const struct pollfd* watched, const int* places, int count, int listener) {
  uint64_t now = tw_now_nanoseconds();
  for (int i = 0; i < count; ++i) {
    if (watched[i].revents != 0) {
      advance(places[i], listener);
    } else if (waiting[places[i]]->deadline <= now) {
      drop(places[i]);
    }
  }
}

static void serve_connections(int listener) {
  while (!is_ending) {
    struct pollfd watched[3 + MOST_SESSIONS + MOST_PENDING] = {{wake_up[0], POLLIN, 0}, {listener, POLLIN, 0}, {-1, 0, 0}};
    int places[MOST_PENDING], count = 0, sessions = num_running;
    if (options.tracker != NULL) watched[2] = (struct pollfd){tracker_descriptor(&tracker), tracker_events(&tracker), 0};
    for (int i = 0; i < sessions; ++i) watched[3 + i] = (struct pollfd){running[i].connection, POLLRDHUP, 0};
    struct pollfd* pending = watched + 3 + sessions;
    for (int i = 0; i < MOST_PENDING; ++i) {
      if (waiting[i] == NULL) continue;
      places[count] = i;
      pending[count++] = (struct pollfd){waiting[i]->channel.reads, POLLIN, 0};
    }
    if (poll(watched, (nfds_t)(3 + sessions + count), time_to_wait()) < 0 && errno != EINTR) break;
    char drained[64];
    if (watched[0].revents != 0) (void)!read(wake_up[0], drained, sizeof drained);
    for (int i = 0; i < sessions; ++i) {
      if (watched[3 + i].revents != 0) client_gone(&running[i]);
    }
    look_after_sessions(false);
    if (options.tracker != NULL) tracker_advance(&tracker, watched[2].revents != 0);
    look_after_connections(pending, places, count, listener);
    if (watched[1].revents != 0) accept_connection(listener);
  }
}

/* Offers the device at the tracker, for clients that connect to where this server listens. */
static void begin_tracker(int listener) {
  struct sockaddr_storage address;
  socklen_t size = sizeof address;
  char port[16] = "0";
  getsockname(listener, (struct sockaddr*)&address, &size);
  getnameinfo((struct sockaddr*)&address, size, NULL, 0, port, sizeof port, NI_NUMERICSERV);
  tracker.label = options.rules.label;
  tracker.own_host = options.own_host;
  tracker.own_port = (uint32_t)atoi(port);
  tracker.key = options.rules.key;
  options.rules.match = tracker.match;
  tracker_offer(&tracker);
  tracker_advance(&tracker, false);
}

/* One session over pipes, for tests and for programs that start the server themselves. */
static int serve_pipes(void) {
  Pending* pending = calloc(1, sizeof *pending);
  uint32_t seconds = 0;
  if (pending == NULL) return 1;
  channel_begin(&pending->channel, options.reads, options.writes);
  pending->is_local = true;
  Progress progress = PENDING_WAITS;
  while (progress == PENDING_WAITS && channel_receive(&pending->channel)) progress = pending_advance(pending, &options.rules, &seconds);
  if (progress != PENDING_OPENED || !start_session(pending, seconds, -1)) return 1;
  close(options.reads);
  close(options.writes);
  while (num_running > 0 && !is_ending) {
    struct pollfd watched = {wake_up[0], POLLIN, 0};
    char drained[64];
    if (poll(&watched, 1, time_to_wait()) > 0) (void)!read(wake_up[0], drained, sizeof drained);
    look_after_sessions(false);
  }
  look_after_sessions(true);
  return 0;
}

int main(int count, char** arguments) {
  if (parse_options(count, arguments) != 0 || read_key() != 0) return 2;
  if (pipe2(wake_up, O_CLOEXEC | O_NONBLOCK) != 0) return 1;
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGCHLD, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGINT, &action, NULL);
  signal(SIGPIPE, SIG_IGN);
  if (options.reads >= 0) return serve_pipes();
  int listener = listen_at();
  if (listener < 0) return 2;
  if (options.tracker != NULL) begin_tracker(listener);
  serve_connections(listener);
  look_after_sessions(true);
  return 0;
}
