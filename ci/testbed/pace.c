/* Measures how long two CPUs of this node take to pass a cache line, in ns, while other programs run.
 *
 *   pace watch           reads it every 10 ms until standard input ends, then prints two whole
 *                        numbers: the means of the first and of the second half of the readings
 *
 * It uses the first and the last CPU that this process may run on. A hypervisor moves virtual CPUs
 * between cores that share a cache and cores that do not, within a second. Intra-node messages then
 * take several times as long, by every library. A reading takes some microseconds of both CPUs, and
 * has priority over their tasks if allowed. It ends with 1 after too few readings.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { HANDED_OVER = 10, BATCHES = 3, MOST_READINGS = 1000000, FEWEST_READINGS = 4 };
static const int64_t PERIOD_NS = 10 * 1000 * 1000, PATIENCE_NS = 300 * 1000;

static _Alignas(128) _Atomic int line;
static _Alignas(128) _Atomic int64_t met[2];
static _Atomic int ended;
static int cpus[2] = {-1, -1};
static float readings[MOST_READINGS];
static int count;

static int64_t now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

static int run_on(int cpu) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    return sched_setaffinity(0, sizeof only, &only);
}

static void go_first(void) {
    struct sched_param least = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
    /* Without the right to it, it waits its turn: fewer readings succeed. */
    sched_setscheduler(0, SCHED_FIFO, &least);
    prctl(PR_SET_TIMERSLACK, 1);
}

/* Waits until ``at``, and then for the other thread; 0 if it came in time. */
static int meet(int side, int64_t at) {
    struct timespec end = {at / 1000000000, at % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) != 0) {
    }
    atomic_store(&met[side], at);
    int64_t until = at + PATIENCE_NS;
    while (atomic_load(&met[!side]) < at)
        if (now() > until) return -1;
    return 0;
}

/* One side sets the line and the other clears it; ns of the quickest of several batches, or -1. */
static int64_t hand_over(int side, int64_t until) {
    int64_t quickest = -1;
    for (int done = 0; done < BATCHES; done++) {
        int64_t begun = now();
        for (int i = 0; i < HANDED_OVER; i++) {
            if (side == 0) atomic_store(&line, 1);
            for (int spins = 1; atomic_load(&line) != side; spins++)
                if (spins % 64 == 0 && now() > until) return -1;
            if (side == 1) atomic_store(&line, 0);
        }
        int64_t took = now() - begun;
        if (quickest < 0 || took < quickest) quickest = took;
    }
    return quickest;
}

static void *watch(void *place) {
    int side = place == &cpus[1];
    run_on(cpus[side]);
    go_first();
    for (int64_t at = now() / PERIOD_NS * PERIOD_NS + 2 * PERIOD_NS; !atomic_load(&ended);) {
        if (meet(side, at) == 0) {
            int64_t took = hand_over(side, at + PATIENCE_NS);
            if (side == 0 && took >= 0 && count < MOST_READINGS)
                readings[count++] = (float)took / (2 * HANDED_OVER);
        }
        if (side == 0) atomic_store(&line, 0);
        at += PERIOD_NS;
        while (at < now()) at += PERIOD_NS;
    }
    return NULL;
}

static double mean(int from, int to) {
    double sum = 0;
    for (int reading = from; reading < to; reading++) sum += readings[reading];
    return sum / (to - from);
}

int main(int argc, char **argv) {
    if (argc != 2 || strcmp(argv[1], "watch") != 0) {
        fputs("usage: pace watch\n", stderr);
        return 2;
    }
    for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++) {
        if (run_on(cpu) != 0) continue;
        if (cpus[0] < 0) cpus[0] = cpu;
        cpus[1] = cpu;
    }
    if (cpus[0] == cpus[1]) {
        fputs("pace: there is one CPU to run on, and it takes two\n", stderr);
        return 1;
    }
    pthread_t threads[2];
    for (int side = 0; side < 2; side++) {
        if (pthread_create(&threads[side], NULL, watch, &cpus[side]) != 0) {
            fputs("pace: no thread could be started\n", stderr);
            return 1;
        }
    }
    char ignored[64];
    while (read(STDIN_FILENO, ignored, sizeof ignored) > 0) {
    }
    atomic_store(&ended, 1);
    for (int side = 0; side < 2; side++) pthread_join(threads[side], NULL);
    if (count < FEWEST_READINGS) {
        fprintf(stderr, "pace: %d readings, and it takes %d\n", count, FEWEST_READINGS);
        return 1;
    }
    printf("%.0f %.0f\n", mean(0, count / 2), mean(count / 2, count));
    return 0;
}
