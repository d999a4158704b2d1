/* Preloaded: the monotonic clock jumps back below zero once the file exists that JUMPS names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*original)(clockid_t, struct timespec *);
    static long set_back;
    if (!original) original = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = original(clock, time);
    const char *jumps = getenv("JUMPS");
    if (clock == CLOCK_MONOTONIC) {
        if (!set_back && jumps && access(jumps, F_OK) == 0) set_back = time->tv_sec + 1000;
        time->tv_sec -= set_back;
    }
    return failed;
}
