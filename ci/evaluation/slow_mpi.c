/* A library to preload that slows down an MPI library at messages of some sizes.
 *
 *   SLOW_MPI=CALL:LEAST-MOST:US:US_PER_KIB,...   time added to a call with a message of so many bytes;
 *                                                a CALL is Send, Alltoall, ...
 *   SLOW_MPI_PROGRAM=NPmpi                       only in the program of this name
 *   SLOW_MPI_UNLESS=NAME=VALUE                   not if this variable has this value
 *
 * A handle is an int in one ABI of MPI and a pointer in another: it is passed on unchanged. The added
 * time is slept, so that ranks which share a CPU are slowed only by their own messages. Waking up takes
 * some 50 us, so shorter times are waited in a loop.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define MOST_RULES 32
#define SHORTEST_SLEEP_US 60

struct rule {
    char call[32];
    long least, most;
    double us, us_per_kib;
};

static struct rule rules[MOST_RULES];
static int rules_given = -1;

static void give_up(const char *why, const char *what)
{
    fprintf(stderr, "slow_mpi: %s: %s\n", why, what);
    _exit(2);
}

static void *next_of(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (!found)
        give_up("no library here has it", name);
    return found;
}

static int spared(void)
{
    const char *text = getenv("SLOW_MPI_UNLESS"), *equals, *value;
    char name[128];

    if (!text)
        return 0;
    equals = strchr(text, '=');
    if (!equals || equals == text || equals - text >= (long)sizeof name)
        give_up("SLOW_MPI_UNLESS is no NAME=VALUE", text);
    memcpy(name, text, (size_t)(equals - text));
    name[equals - text] = 0;
    value = getenv(name);
    return value && !strcmp(value, equals + 1);
}

static void read_rules(void)
{
    const char *program = getenv("SLOW_MPI_PROGRAM"), *text = getenv("SLOW_MPI");
    int used;

    rules_given = 0;
    if (!text || (program && strcmp(program, program_invocation_short_name)) || spared())
        return;
    while (*text) {
        struct rule *one = &rules[rules_given++];

        if (rules_given > MOST_RULES
            || sscanf(text, "%31[A-Za-z_]:%ld-%ld:%lf:%lf%n", one->call, &one->least, &one->most,
                      &one->us, &one->us_per_kib, &used) != 5
            || (text[used] && text[used] != ','))
            give_up("SLOW_MPI cannot be read from here on", text);
        text += used + (text[used] == ',');
    }
}

static long bytes_of(long count, long type)
{
    int size = 0;

    ((int (*)(long, int *))next_of("MPI_Type_size"))(type, &size);
    return count * size;
}

static long ranks_of(long communicator)
{
    int ranks = 0;

    ((int (*)(long, int *))next_of("MPI_Comm_size"))(communicator, &ranks);
    return ranks;
}

static void slow(const char *call, long bytes)
{
    double us = 0;
    long slack;
    struct timespec now, until;

    for (int i = 0; i < rules_given; i++)
        if (!strcmp(rules[i].call, call) && rules[i].least <= bytes && bytes <= rules[i].most)
            us += rules[i].us + rules[i].us_per_kib * (double)bytes / 1024;
    if (us <= 0)
        return;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(us * 1000);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (us < SHORTEST_SLEEP_US) {
        do
            clock_gettime(CLOCK_MONOTONIC, &now);
        while (now.tv_sec < until.tv_sec
               || (now.tv_sec == until.tv_sec && now.tv_nsec < until.tv_nsec));
        return;
    }
    /* By itself a sleep may be 50 us longer. The library's own waiting is left as it was. */
    slack = prctl(PR_GET_TIMERSLACK, 0L, 0L, 0L, 0L);
    prctl(PR_SET_TIMERSLACK, 1L, 0L, 0L, 0L);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
    prctl(PR_SET_TIMERSLACK, slack, 0L, 0L, 0L);
}

#define SLOWED(name, parameters, arguments, bytes)                                                 \
    int MPI_##name parameters;                                                                     \
    int MPI_##name parameters                                                                      \
    {                                                                                              \
        static int(*next) parameters;                                                              \
                                                                                                   \
        if (rules_given < 0)                                                                       \
            read_rules();                                                                          \
        if (!next)                                                                                 \
            next = (int(*) parameters)next_of("MPI_" #name);                                       \
        if (rules_given)                                                                           \
            slow(#name, bytes);                                                                    \
        return next arguments;                                                                     \
    }

static long sum_of(const int *counts, long ranks)
{
    long sum = 0;

    for (long i = 0; i < ranks; i++)
        sum += counts[i];
    return sum;
}

SLOWED(Send, (const void *b, long n, long t, long to, long tag, long c), (b, n, t, to, tag, c),
       bytes_of(n, t))
SLOWED(Isend, (const void *b, long n, long t, long to, long tag, long c, void *r),
       (b, n, t, to, tag, c, r), bytes_of(n, t))
SLOWED(Sendrecv,
       (const void *b, long n, long t, long to, long tag, void *b2, long n2, long t2, long from,
        long tag2, long c, void *s),
       (b, n, t, to, tag, b2, n2, t2, from, tag2, c, s), bytes_of(n, t))
SLOWED(Bcast, (void *b, long n, long t, long root, long c), (b, n, t, root, c), bytes_of(n, t))
SLOWED(Reduce, (const void *b, void *b2, long n, long t, long op, long root, long c),
       (b, b2, n, t, op, root, c), bytes_of(n, t))
SLOWED(Allreduce, (const void *b, void *b2, long n, long t, long op, long c),
       (b, b2, n, t, op, c), bytes_of(n, t))
SLOWED(Reduce_scatter, (const void *b, void *b2, const int *n, long t, long op, long c),
       (b, b2, n, t, op, c), bytes_of(sum_of(n, ranks_of(c)), t))
SLOWED(Gather,
       (const void *b, long n, long t, void *b2, long n2, long t2, long root, long c),
       (b, n, t, b2, n2, t2, root, c), bytes_of(n, t))
SLOWED(Scatter,
       (const void *b, long n, long t, void *b2, long n2, long t2, long root, long c),
       (b, n, t, b2, n2, t2, root, c), bytes_of(n, t))
SLOWED(Allgather, (const void *b, long n, long t, void *b2, long n2, long t2, long c),
       (b, n, t, b2, n2, t2, c), bytes_of(n, t))
SLOWED(Alltoall, (const void *b, long n, long t, void *b2, long n2, long t2, long c),
       (b, n, t, b2, n2, t2, c), bytes_of(n, t))
SLOWED(Barrier, (long c), (c), 0)
