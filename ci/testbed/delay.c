/* Holds packets for a time: the delay line of an emulated link.
 *
 *   delay QUEUE DELAY JITTER BATCH REORDER SEED
 *
 * Takes packets that netfilter puts into QUEUE and releases each DELAY microseconds later, and up to
 * JITTER more, drawn evenly. If BATCH is not 0, all waiting packets go at its next whole multiple, as
 * with a network card that coalesces interrupts. Packets stay in order, except REORDER of a million,
 * drawn at random, which go at once and overtake the others. SEED makes the draws repeatable. Prints
 * "holding" once it does, or ends with 1 and a sentence if the kernel refuses something.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <libnetfilter_queue/libnetfilter_queue.h>

#define MOST_HELD 65536
#define MILLION 1000000u
#define STEP_NS 100u
/* Where CPUs are so busy that timers are later than that, we do not keep them busy too. */
#define MOST_LATENESS_NS 100000u
#define LEARNING_WAKES 200
#define LEARNING_NS 100000u
#define BYTES_OF_SOCKET (64 << 20)

struct packet {
    uint64_t due;
    uint64_t number;
    uint32_t id;
};

/* A heap: the packet that is due first, and of those due together the one that came first, on top. */
static struct packet held[MOST_HELD];
static size_t count;

static uint64_t delay_ns, jitter_ns, batch_ns, begun, latest, taken, state;
static uint32_t reorder;
/* How late timers wake us: so much before a packet is due we stop sleeping, and watch the clock. */
static uint64_t lateness;

static uint64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

/* Marsaglia's xorshift, 64 bits. */
static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static int sooner(const struct packet *one, const struct packet *other) {
    return one->due != other->due ? one->due < other->due : one->number < other->number;
}

static void swap(size_t one, size_t other) {
    struct packet kept = held[one];
    held[one] = held[other];
    held[other] = kept;
}

static void put(struct packet packet) {
    size_t place = count++;
    held[place] = packet;
    while (place && sooner(&held[place], &held[(place - 1) / 2])) {
        swap(place, (place - 1) / 2);
        place = (place - 1) / 2;
    }
}

static struct packet take(void) {
    struct packet first = held[0];
    held[0] = held[--count];
    for (size_t place = 0;;) {
        size_t least = place;
        for (size_t child = 2 * place + 1; child <= 2 * place + 2; child++)
            if (child < count && sooner(&held[child], &held[least])) least = child;
        if (least == place) return first;
        swap(place, least);
        place = least;
    }
}

static uint64_t due_of_next(uint64_t at) {
    if (reorder && draw() % MILLION < reorder) return at;
    uint64_t due = at + delay_ns + (jitter_ns ? draw() % (jitter_ns + 1) : 0);
    if (batch_ns) due = begun + (due - begun + batch_ns - 1) / batch_ns * batch_ns;
    /* No packet overtakes another by its jitter. */
    if (due < latest) due = latest;
    latest = due;
    return due;
}

static int arrived(struct nfq_q_handle *queue, struct nfgenmsg *message, struct nfq_data *data,
                   void *unused) {
    (void)message;
    (void)unused;
    struct nfqnl_msg_packet_hdr *header = nfq_get_msg_packet_hdr(data);
    if (header == NULL) return 0;
    uint32_t id = ntohl(header->packet_id);
    if (count == MOST_HELD) return nfq_set_verdict(queue, id, NF_DROP, 0, NULL) < 0 ? -1 : 0;
    put((struct packet){due_of_next(now()), taken++, id});
    return 0;
}

/* Waits until there is something to read, or until ``end`` if that is not 0; learns how late that
 * wakes us: what nine wakes of ten stay below. */
static int wait_until(int socket, uint64_t end) {
    struct timespec left, *limit = NULL;
    if (end) {
        uint64_t at = now(), ns = end > at ? end - at : 0;
        left = (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
        limit = &left;
    }
    struct pollfd readable = {.fd = socket, .events = POLLIN};
    int woken = ppoll(&readable, 1, limit, NULL);
    if (woken < 0) return errno == EINTR ? 0 : -1;
    if (woken > 0) return 0;
    if (now() - end > lateness)
        lateness += 9 * STEP_NS;
    else
        lateness -= lateness < STEP_NS ? lateness : STEP_NS;
    if (lateness > MOST_LATENESS_NS) lateness = MOST_LATENESS_NS;
    return 0;
}

/* A packet that is due goes before what else wants the CPU, as it does on a wire. Where CPUs may be
 * kept from sleeping, they are: waking one takes longer the longer it slept, and so the path that
 * packets take would be slower with a longer delay. */
static int be_prompt(void) {
    struct sched_param least = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
    if (sched_setscheduler(0, SCHED_FIFO, &least)) return -1;
    /* The kernel would wake us up to 50 microseconds late. */
    if (prctl(PR_SET_TIMERSLACK, 1)) return -1;
    int32_t most_us = 0;
    int awake = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
    /* In force for as long as it is open. */
    if (awake >= 0 && write(awake, &most_us, sizeof most_us) != sizeof most_us) return -1;
    for (int wakes = 0; wakes < LEARNING_WAKES; wakes++)
        if (wait_until(-1, now() + LEARNING_NS)) return -1;
    return 0;
}

static int failed(const char *what) {
    fprintf(stderr, "delay: %s: %s\n", what, strerror(errno));
    return 1;
}

static int read_number(const char *text, uint64_t most, uint64_t *number) {
    char *end;
    errno = 0;
    unsigned long long found = strtoull(text, &end, 10);
    if (errno || *end || end == text || *text == '-' || found > most) return -1;
    *number = found;
    return 0;
}

int main(int argc, char **argv) {
    uint64_t queue_number, share;
    if (argc != 7 || read_number(argv[1], 65535, &queue_number) ||
        read_number(argv[2], 10000000, &delay_ns) || read_number(argv[3], 10000000, &jitter_ns) ||
        read_number(argv[4], 10000000, &batch_ns) || read_number(argv[5], MILLION, &share) ||
        read_number(argv[6], UINT64_MAX, &state)) {
        fprintf(stderr, "usage: delay QUEUE DELAY JITTER BATCH REORDER SEED\n");
        return 2;
    }
    delay_ns *= 1000;
    jitter_ns *= 1000;
    batch_ns *= 1000;
    reorder = (uint32_t)share;
    state = state * 2 + 1;
    begun = now();
    if (be_prompt()) return failed("cannot go before others");

    struct nfq_handle *handle = nfq_open();
    if (handle == NULL) return failed("the kernel has no netfilter queues");
    struct nfq_q_handle *queue = nfq_create_queue(handle, (uint16_t)queue_number, arrived, NULL);
    if (queue == NULL) return failed("cannot take the queue");
    if (nfq_set_mode(queue, NFQNL_COPY_META, 0) < 0) return failed("cannot ask for packets");
    if (nfq_set_queue_maxlen(queue, MOST_HELD) < 0) return failed("cannot lengthen the queue");
    /* Segments stay together, as the card would get them. */
    if (nfq_set_queue_flags(queue, NFQA_CFG_F_GSO, NFQA_CFG_F_GSO))
        return failed("cannot keep segments together");
    int socket = nfq_fd(handle), bytes = BYTES_OF_SOCKET;
    if (setsockopt(socket, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes))
        return failed("cannot enlarge the socket");
    puts("holding");
    fflush(stdout);

    static char buffer[65536] __attribute__((aligned(8)));
    for (;;) {
        uint64_t at = now();
        while (count && held[0].due <= at)
            if (nfq_set_verdict(queue, take().id, NF_ACCEPT, 0, NULL) < 0)
                return failed("cannot let a packet go");
        ssize_t got = recv(socket, buffer, sizeof buffer, MSG_DONTWAIT);
        if (got > 0) {
            nfq_handle_packet(handle, buffer, (int)got);
            continue;
        }
        if (got < 0 && errno != EAGAIN && errno != ENOBUFS && errno != EINTR)
            return failed("cannot read");
        if (count && held[0].due <= at + lateness) continue;
        if (wait_until(socket, count ? held[0].due - lateness : 0)) return failed("cannot wait");
    }
}
