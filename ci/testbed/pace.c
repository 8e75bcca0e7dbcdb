/* How long two CPUs of this node take to hand a cache line over, in ns.
 *
 *   pace                 prints a whole number
 *
 * Between the first and the last CPU that this process may run on. A hypervisor moves virtual CPUs
 * between cores that share a cache and cores that do not, within seconds; messages inside a node
 * then take several times as long, by every library. It ends with 1 where it cannot be told.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { HANDED_OVER = 200, BATCHES = 50 };
static const double PATIENCE_S = 0.2;

static _Alignas(128) _Atomic int line;
static _Atomic int ended;

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec * 1e-9;
}

static int run_on(int cpu) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    return sched_setaffinity(0, sizeof only, &only);
}

static void *hand_back(void *cpu) {
    if (run_on(*(int *)cpu) != 0) return NULL;
    while (!atomic_load(&ended)) {
        if (atomic_load(&line) == 1) atomic_store(&line, 0);
    }
    return NULL;
}

/* Seconds of a batch, each of which is there and back; below 0 when the patience is at its end. */
static double batch(double until) {
    double begun = now();
    for (int i = 0; i < HANDED_OVER; i++) {
        atomic_store(&line, 1);
        for (long spins = 0; atomic_load(&line) != 0; spins++) {
            if ((spins & 0xffff) == 0xffff && now() > until) return -1;
        }
    }
    return now() - begun;
}

int main(void) {
    int first = -1, last = -1;
    for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++) {
        if (run_on(cpu) != 0) continue;
        if (first < 0) first = cpu;
        last = cpu;
    }
    if (first == last) {
        fputs("pace: there is one CPU to run on, and it takes two\n", stderr);
        return 1;
    }
    pthread_t other;
    run_on(first);
    if (pthread_create(&other, NULL, hand_back, &last) != 0) {
        fputs("pace: no second thread could be started\n", stderr);
        return 1;
    }
    /* The quickest of several: in the others one of the two may have waited for its CPU. */
    double quickest = -1, until = now() + PATIENCE_S;
    for (int done = 0; done < BATCHES && now() < until; done++) {
        double took = batch(until);
        if (took >= 0 && (quickest < 0 || took < quickest)) quickest = took;
    }
    atomic_store(&ended, 1);
    if (quickest < 0) {
        fputs("pace: the two CPUs had other work all the time\n", stderr);
        return 1;
    }
    pthread_join(other, NULL);
    printf("%.0f\n", quickest / (2 * HANDED_OVER) * 1e9);
    return 0;
}
