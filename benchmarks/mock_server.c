/* A streaming OpenAI-like server whose send times are known: the truth that clients are measured against.
 *
 * One thread, epoll, one SSE event a write, TCP_NODELAY. Event k of a request is due at received + first + k * pace
 * (absolute, so that lateness does not add up); --spread moves a request's events by up to half a pace either way,
 * so that requests that came together do not beat together; --saturated sends as fast as the sockets take. CLOCK_MONOTONIC is read
 * just before each send, and is the clock of Python's time.monotonic(). One JSON line per request goes to --log:
 * received_ns (last byte of the request read), first_ns and last_ns (before the send of the first and last event with
 * tokens), events, tokens, and what identifies it: tag (the first "bench-" plus digits in the body), x_request_id.
 * --all-times adds times_ns, one per event. Prints "listening PORT" once it accepts; SIGTERM ends it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MAX_TOKENS_PER_EVENT = 64, EVENT_SIZE = 1024, MAX_REQUEST = 8 << 20 };

struct conn {
    int fd, heap_at; /* heap_at: place in the heap, -1 = not in it */
    bool streaming, chat, usage, wants_out;
    char *in;
    size_t in_len, in_cap;
    char *out; /* bytes that the socket did not take */
    size_t out_len, out_at;
    char event[EVENT_SIZE]; /* one event with tokens, chunk framing included: the same for the whole request */
    size_t event_len;
    char id[40], tag[24], request_id[80];
    long number, tokens, events, sent, blocked;
    int64_t due, received, first, last, *times;
};

static int64_t pace_ns = 10000000, first_delay_ns = -1;
static long tokens_per_event = 1, counter;
static bool all_times, spread;
static FILE *log_file;
static int epoll_fd, timer_fd, listener, signals; /* the addresses of the last three mark their events */
static struct conn **heap;
static int heap_len, heap_cap;
static int64_t armed = -1;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void *grown(void *old, size_t size) {
    void *p = realloc(old, size);
    if (!p) die("realloc");
    return p;
}

/* A binary heap of the streams that wait for their next deadline. */
static void heap_put(int at, struct conn *c) {
    heap[at] = c;
    c->heap_at = at;
}

static void heap_up(int at) {
    struct conn *c = heap[at];
    while (at && heap[(at - 1) / 2]->due > c->due) {
        heap_put(at, heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_put(at, c);
}

static void heap_down(int at) {
    struct conn *c = heap[at];
    for (;;) {
        int child = 2 * at + 1;
        if (child >= heap_len) break;
        if (child + 1 < heap_len && heap[child + 1]->due < heap[child]->due) child++;
        if (heap[child]->due >= c->due) break;
        heap_put(at, heap[child]);
        at = child;
    }
    heap_put(at, c);
}

static void heap_push(struct conn *c) {
    if (heap_len == heap_cap) heap = grown(heap, sizeof *heap * (size_t)(heap_cap = heap_cap ? 2 * heap_cap : 64));
    heap[heap_len] = c;
    heap_up(heap_len++);
}

static void heap_remove(struct conn *c) {
    int at = c->heap_at;
    if (at < 0) return;
    c->heap_at = -1;
    struct conn *moved = heap[--heap_len];
    if (moved == c) return;
    heap_put(at, moved);
    heap_up(at);
    heap_down(moved->heap_at);
}

static void watch(struct conn *c, bool out) {
    struct epoll_event e = {.events = EPOLLIN | (out ? EPOLLOUT : 0), .data.ptr = c};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_MOD, c->fd, &e)) die("epoll_ctl");
    c->wants_out = out;
}

static void log_request(struct conn *c, bool aborted) {
    fprintf(log_file,
            "{\"number\":%ld,\"tag\":\"%s\",\"x_request_id\":\"%s\",\"received_ns\":%lld,\"first_ns\":%lld,"
            "\"last_ns\":%lld,\"events\":%ld,\"tokens\":%ld,\"blocked\":%ld,\"aborted\":%s",
            c->number, c->tag, c->request_id, (long long)c->received, (long long)c->first, (long long)c->last, c->sent,
            c->sent >= c->events ? c->tokens : c->sent * tokens_per_event, c->blocked, aborted ? "true" : "false");
    if (all_times) {
        fprintf(log_file, ",\"times_ns\":[");
        for (long i = 0; i < c->sent; i++) fprintf(log_file, "%s%lld", i ? "," : "", (long long)c->times[i]);
        fprintf(log_file, "]");
    }
    fprintf(log_file, "}\n");
}

static void drop(struct conn *c) {
    if (c->streaming) log_request(c, true);
    heap_remove(c);
    close(c->fd);
    free(c->in);
    free(c->out);
    free(c->times);
    free(c);
}

/* Writes, or keeps what the socket does not take. False: the connection is gone (and freed). */
static bool put(struct conn *c, const char *data, size_t size) {
    ssize_t n = 0;
    if (c->out_at == c->out_len) {
        n = send(c->fd, data, size, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            drop(c);
            return false;
        }
        if (n < 0) n = 0;
        if ((size_t)n == size) return true;
        c->out_at = c->out_len = 0;
    }
    c->blocked++;
    c->out = grown(c->out, c->out_len + size - (size_t)n);
    memcpy(c->out + c->out_len, data + n, size - (size_t)n);
    c->out_len += size - (size_t)n;
    if (!c->wants_out) watch(c, true);
    return true;
}

/* One SSE event as one chunk of the body; returns its length. */
static size_t framed(char *to, size_t room, const char *form, ...) {
    char body[EVENT_SIZE];
    va_list args;
    va_start(args, form);
    int n = vsnprintf(body, sizeof body, form, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof body) exit(1);
    n = snprintf(to, room, "%x\r\n%s\r\n", (unsigned)n, body);
    if (n < 0 || (size_t)n >= room) exit(1);
    return (size_t)n;
}

static size_t token_event(struct conn *c, char *to, const char *content, const char *finish) {
    const char *object = c->chat ? "chat.completion.chunk" : "text_completion";
    const char *form = c->chat ? "data: {\"id\":\"%s\",\"object\":\"%s\",\"created\":1795970484,\"model\":\"mock\","
                                 "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%s\"},\"logprobs\":null,"
                                 "\"finish_reason\":%s,\"token_ids\":null}]}\n\n"
                               : "data: {\"id\":\"%s\",\"object\":\"%s\",\"created\":1795970484,\"model\":\"mock\","
                                 "\"choices\":[{\"index\":0,\"text\":\"%s\",\"logprobs\":null,\"finish_reason\":%s,"
                                 "\"stop_reason\":null,\"token_ids\":null}]}\n\n";
    return framed(to, EVENT_SIZE, form, c->id, object, content, finish);
}

static void content_of(char *to, long tokens) {
    *to = 0;
    for (long i = 0; i < tokens; i++) strcat(to, " word");
}

static void process(struct conn *c);

static void end_stream(struct conn *c) {
    log_request(c, false);
    c->streaming = false;
    free(c->times);
    c->times = NULL;
    process(c); /* a request that came meanwhile */
}

/* Sends the next event of a stream; the last one takes usage and [DONE] after it. */
static void send_event(struct conn *c) {
    char buffer[3 * EVENT_SIZE], content[8 * MAX_TOKENS_PER_EVENT];
    heap_remove(c);
    if (!c->sent) {
        size_t n = (size_t)sprintf(buffer, "HTTP/1.1 200 OK\r\nserver: mock\r\ncontent-type: text/event-stream; "
                                           "charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n");
        if (c->chat)
            n += framed(buffer + n, EVENT_SIZE,
                        "data: {\"id\":\"%s\",\"object\":\"chat.completion.chunk\",\"created\":1795970484,\"model\":"
                        "\"mock\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
                        "\"logprobs\":null,\"finish_reason\":null}],\"prompt_token_ids\":null}\n\n", c->id);
        if (!put(c, buffer, n)) return;
    }
    bool final = c->sent + 1 == c->events;
    const char *event = c->event;
    size_t size = c->event_len;
    if (final) {
        content_of(content, c->tokens - (c->events - 1) * tokens_per_event);
        size = token_event(c, buffer, content, "\"length\"");
        event = buffer;
    }
    int64_t at = now_ns();
    if (!c->sent) c->first = at;
    c->last = at;
    if (all_times) c->times[c->sent] = at;
    c->sent++;
    if (!put(c, event, size)) return;
    if (!final) {
        c->due = pace_ns ? c->due + pace_ns : at;
        if (c->out_at == c->out_len) heap_push(c); /* else when the socket takes bytes again */
        return;
    }
    if (c->usage) {
        size = framed(buffer, EVENT_SIZE,
                      "data: {\"id\":\"%s\",\"object\":\"%s\",\"created\":1795970484,\"model\":\"mock\",\"choices\":[],"
                      "\"usage\":{\"prompt_tokens\":32,\"total_tokens\":%ld,\"completion_tokens\":%ld},"
                      "\"system_fingerprint\":\"mock\"}\n\n",
                      c->id, c->chat ? "chat.completion.chunk" : "text_completion", 32 + c->tokens, c->tokens);
        if (!put(c, buffer, size)) return;
    }
    size = (size_t)sprintf(buffer, "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
    if (!put(c, buffer, size)) return;
    if (c->out_at == c->out_len) end_stream(c);
}

static void reply(struct conn *c, const char *status, const char *type, const char *body) {
    char buffer[4096];
    int n = snprintf(buffer, sizeof buffer, "HTTP/1.1 %s\r\nserver: mock\r\ncontent-type: %s\r\ncontent-length: %zu\r\n"
                                            "\r\n%s", status, type, strlen(body), body);
    put(c, buffer, (size_t)n);
}

/* The value after "key": in JSON text: a key inside a string would have its quotes escaped, so it cannot match. */
static const char *value_of(const char *body, const char *key) {
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\"", key);
    const char *at = strstr(body, quoted);
    if (!at) return NULL;
    at += strlen(quoted);
    while (*at == ' ' || *at == ':') at++;
    return at;
}

static bool is_true(const char *body, const char *key) {
    const char *value = value_of(body, key);
    return value && !strncmp(value, "true", 4);
}

static long output_tokens(const char *body) {
    const char *value = value_of(body, "max_completion_tokens");
    if (!value || !isdigit((unsigned char)*value)) value = value_of(body, "max_tokens");
    long tokens = value && isdigit((unsigned char)*value) ? strtol(value, NULL, 10) : 16;
    return tokens < 1 ? 1 : tokens;
}

/* A header's value, copied as far as it is harmless inside JSON. */
static void header(const char *head, const char *name, char *to, size_t room) {
    const char *at = strcasestr(head, name);
    size_t n = 0;
    if (at) {
        at += strlen(name);
        while (*at == ' ') at++;
        while (n + 1 < room && (isalnum((unsigned char)*at) || *at == '-' || *at == '_' || *at == '.')) to[n++] = *at++;
    }
    to[n] = 0;
}

static void find_tag(const char *body, char *to, size_t room) {
    const char *at = body;
    *to = 0;
    while ((at = strstr(at, "bench-"))) {
        size_t digits = strspn(at + 6, "0123456789");
        if (digits && digits + 7 <= room) {
            memcpy(to, at, digits + 6);
            to[digits + 6] = 0;
            return;
        }
        at += 6;
    }
}

/* Evenly spread over 0..1 whatever the order: multiples of the golden ratio, modulo 1. */
static double phase_of(long number) {
    double turns = (double)number * 0.6180339887498949;
    return turns - (double)(long)turns;
}

static void complete(struct conn *c, const char *head, const char *body, bool chat) {
    char content[8 * MAX_TOKENS_PER_EVENT], text[4096];
    c->number = counter++;
    c->chat = chat;
    c->tokens = output_tokens(body);
    c->events = (c->tokens + tokens_per_event - 1) / tokens_per_event;
    c->usage = is_true(body, "include_usage");
    c->sent = c->blocked = 0;
    c->first = c->last = 0;
    snprintf(c->id, sizeof c->id, "%s-%ld", chat ? "chatcmpl" : "cmpl", c->number);
    header(head, "\r\nx-request-id:", c->request_id, sizeof c->request_id);
    find_tag(body, c->tag, sizeof c->tag);
    content_of(content, tokens_per_event);
    if (!is_true(body, "stream")) {
        snprintf(text, sizeof text,
                 "{\"id\":\"%s\",\"object\":\"%s\",\"created\":1795970484,\"model\":\"mock\",\"choices\":[{\"index\":0,"
                 "%s\"%s\"%s,\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":32,\"total_tokens\":%ld,"
                 "\"completion_tokens\":%ld}}",
                 c->id, chat ? "chat.completion" : "text_completion",
                 chat ? "\"message\":{\"role\":\"assistant\",\"content\":" : "\"text\":", content, chat ? "}" : "",
                 32 + c->tokens, c->tokens);
        reply(c, "200 OK", "application/json", text);
        return;
    }
    c->event_len = token_event(c, c->event, content, "null");
    c->streaming = true;
    if (all_times) c->times = grown(NULL, sizeof *c->times * (size_t)c->events);
    c->due = c->received + (first_delay_ns < 0 ? pace_ns : first_delay_ns);
    if (spread) c->due += (int64_t)((phase_of(c->number) - 0.5) * (double)pace_ns);
    heap_push(c);
}

static void serve(struct conn *c, const char *head, const char *body) {
    if (!strncmp(head, "POST /v1/chat/completions", 25)) return complete(c, head, body, true);
    if (!strncmp(head, "POST /v1/completions", 20)) return complete(c, head, body, false);
    if (!strncmp(head, "POST /tokenize", 14)) {
        char text[96]; /* four bytes a token: a length estimate, nobody reads the ids */
        snprintf(text, sizeof text, "{\"count\":%zu,\"max_model_len\":1048576,\"tokens\":[]}", strlen(body) / 4);
        return reply(c, "200 OK", "application/json", text);
    }
    if (!strncmp(head, "GET /v1/models", 14))
        return reply(c, "200 OK", "application/json",
                     "{\"object\":\"list\",\"data\":[{\"id\":\"mock\",\"object\":\"model\",\"created\":1795970484,"
                     "\"owned_by\":\"mock\",\"root\":\"mock\",\"max_model_len\":1048576}]}");
    if (!strncmp(head, "GET /health", 11)) return reply(c, "200 OK", "text/plain", "");
    if (!strncmp(head, "GET /version", 12)) return reply(c, "200 OK", "application/json", "{\"version\":\"0.32.0\"}");
    if (!strncmp(head, "GET /metrics", 12))
        return reply(c, "200 OK", "text/plain; version=0.0.4; charset=utf-8",
                     "# HELP vllm:num_requests_running Number of requests in model execution batches.\n"
                     "# TYPE vllm:num_requests_running gauge\n"
                     "vllm:num_requests_running{engine=\"0\",model_name=\"mock\"} 0.0\n");
    reply(c, "404 Not Found", "application/json", "{\"detail\":\"Not Found\"}");
}

/* Serves the request that is whole in the buffer, if there is one and no stream is under way. */
static void process(struct conn *c) {
    if (c->streaming || !c->in_len) return;
    c->in[c->in_len] = 0;
    char *end = strstr(c->in, "\r\n\r\n"), number[24];
    if (!end) return;
    *end = 0;
    header(c->in, "\r\ncontent-length:", number, sizeof number);
    size_t length = strtoul(number, NULL, 10), head = (size_t)(end - c->in) + 4, whole = head + length;
    if (c->in_len < whole) {
        *end = '\r';
        return;
    }
    char kept = c->in[whole], *text = c->in;
    size_t rest = c->in_len - whole;
    text[whole] = 0;
    c->received = now_ns();
    c->in = grown(NULL, rest + 4096); /* the request's own buffer goes; what follows it stays */
    c->in_cap = rest + 4096;
    c->in_len = rest;
    if (rest) {
        c->in[0] = kept;
        memcpy(c->in + 1, text + whole + 1, rest - 1);
    }
    serve(c, text, text + head);
    free(text);
}

/* False: the connection is gone. */
static bool take(struct conn *c) {
    for (;;) {
        if (c->in_cap - c->in_len < 4096) {
            if (c->in_cap > MAX_REQUEST) return drop(c), false;
            c->in = grown(c->in, c->in_cap = 2 * c->in_cap + 4096);
        }
        size_t room = c->in_cap - c->in_len - 1;
        ssize_t n = recv(c->fd, c->in + c->in_len, room, 0);
        if (n > 0) c->in_len += (size_t)n;
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return drop(c), false;
        if (n < (ssize_t)room) return true;
    }
}

static void flush_out(struct conn *c) {
    ssize_t n = send(c->fd, c->out + c->out_at, c->out_len - c->out_at, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return drop(c);
    if (n > 0) c->out_at += (size_t)n;
    if (c->out_at < c->out_len) return;
    watch(c, false);
    if (!c->streaming) return;
    if (c->sent < c->events)
        heap_push(c);
    else
        end_stream(c);
}

static void accept_all(void) {
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        int one = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct conn *c = grown(NULL, sizeof *c);
        memset(c, 0, sizeof *c);
        c->fd = fd;
        c->heap_at = -1;
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
        if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e)) die("epoll_ctl");
    }
}

/* Sets the timer to the earliest deadline, or leaves it. */
static void arm(void) {
    int64_t due = heap_len ? heap[0]->due : -1;
    if (due == armed) return;
    armed = due;
    struct itimerspec t = {.it_value = {.tv_sec = due < 0 ? 0 : due / 1000000000, .tv_nsec = due < 0 ? 0 : due % 1000000000}};
    if (timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &t, NULL)) die("timerfd_settime");
}

static void run(void) {
    struct epoll_event ready[256];
    for (;;) {
        bool overdue = heap_len && heap[0]->due <= now_ns();
        if (!overdue) arm();
        int n = epoll_wait(epoll_fd, ready, 256, overdue ? 0 : -1);
        for (int i = 0; i < n; i++) {
            void *who = ready[i].data.ptr;
            if (who == &signals) return;
            if (who == &listener) {
                accept_all();
            } else if (who == &timer_fd) {
                uint64_t count;
                if (read(timer_fd, &count, sizeof count) > 0) armed = -1;
            } else if (ready[i].events & EPOLLOUT) {
                flush_out(who); /* level-triggered: what came in is reported again */
            } else if (take(who)) {
                process(who);
            }
        }
        /* one event per due stream, then the sockets again: no stream starves another */
        int64_t now = now_ns();
        for (int left = heap_len; left > 0 && heap_len && heap[0]->due <= now; left--) send_event(heap[0]);
    }
}

static double number_of(const char *text, double least) {
    char *end;
    double value = strtod(text, &end);
    if (*end || !(value >= least)) {
        fprintf(stderr, "mock_server: %s is not a number of at least %g\n", text, least);
        exit(2);
    }
    return value;
}

static void watched(int fd, void *mark) {
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = mark};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e)) die("epoll_ctl");
}

int main(int argc, char **argv) {
    const char *log_path = NULL;
    int port = 0;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--saturated")) pace_ns = 0;
        else if (!strcmp(argv[i], "--all-times")) all_times = true;
        else if (!strcmp(argv[i], "--spread")) spread = true;
        else if (!strcmp(argv[i], "--port")) port = (int)number_of(value, 0), i++;
        else if (!strcmp(argv[i], "--pace-ms")) pace_ns = (int64_t)(number_of(value, 0.001) * 1e6), i++;
        else if (!strcmp(argv[i], "--first-ms")) first_delay_ns = (int64_t)(number_of(value, 0) * 1e6), i++;
        else if (!strcmp(argv[i], "--tokens-per-event")) tokens_per_event = (long)number_of(value, 1), i++;
        else if (!strcmp(argv[i], "--log")) log_path = value, i++;
        else {
            fprintf(stderr, "usage: mock_server --log FILE [--port N] [--pace-ms X | --saturated] [--spread] [--first-ms X] "
                            "[--tokens-per-event N] [--all-times]\n");
            return 2;
        }
    }
    if (tokens_per_event > MAX_TOKENS_PER_EVENT) tokens_per_event = MAX_TOKENS_PER_EVENT;
    if (!log_path || !(log_file = fopen(log_path, "w"))) die("mock_server: --log");
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    struct rlimit files;
    if (!getrlimit(RLIMIT_NOFILE, &files)) files.rlim_cur = files.rlim_max, setrlimit(RLIMIT_NOFILE, &files);

    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int one = 1;
    signals = signalfd(-1, &set, SFD_NONBLOCK);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 4096)) die("mock_server: listen");
    socklen_t size = sizeof at;
    getsockname(listener, (struct sockaddr *)&at, &size);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    watched(listener, &listener);
    watched(signals, &signals);
    watched(timer_fd, &timer_fd);
    printf("listening %d\n", ntohs(at.sin_port));
    fflush(stdout);
    run();
    fclose(log_file);
    return 0;
}
