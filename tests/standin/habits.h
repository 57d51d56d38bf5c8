/* What a driver's library does to the process that has loaded it, by the name in NVML_STANDIN_HABIT: as it is loaded,
   or, where the name ends in "later", at its 30th call. */
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

static const char *habit = "";

static int has(const char *name) { return !strncmp(habit, name, strlen(name)); }

static void *burn(void *nothing)
{
    for (volatile int i = 0;; i++)
        ;
    return nothing;
}

static void interrupt(int number) { (void)number; }

static void say(const char *text) /* where the worker answers */
{
    if (write(3, text, strlen(text)) < 0)
        return;
}

static void *spin(void *nothing)
{
    for (;;)
        pause();
    return nothing;
}

static void wait_at_exit(void) { sleep(60); }

static void limit(int what, rlim_t most)
{
    struct rlimit both = {most, most};
    setrlimit(what, &both);
}

static void live_up_to_it(void)
{
    sigset_t all;
    pthread_t thread;
    if (has("prints"))
        printf("NVRM: hello\n\tx\n"), fflush(stdout);
    if (has("prints an answer"))
        printf("nvmlDeviceGetCount\t8\n"), fflush(stdout);
    if (has("prints bytes"))
        for (int i = 0; i < 1 << 20; i++)
            putchar(i);
    if (has("prints on stderr"))
        for (int i = 0; i < 10000; i++)
            fprintf(stderr, "NVRM: hello\n");
    if (has("closes stdout"))
        close(1);
    if (has("closes all"))
        for (int fd = 0; fd < 1024; fd++)
            close(fd);
    if (has("sends stdout elsewhere"))
        dup2(open("/dev/null", O_WRONLY), 1);
    if (has("makes stdin of stdout"))
        dup2(0, 1);
    if (has("forks") && !fork())
        for (sleep(20);;)
            _exit(0);
    if (has("leaves a daemon") && !fork()) {
        setsid();
        if (!fork())
            sleep(1);
        _exit(0);
    }
    if (has("floods"))
        for (;;)
            say(has("floods without") ? "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" : "x\nnvmlDeviceGetName\n\n");
    if (has("says half a line"))
        say("nvml");
    if (has("says bytes"))
        say("\xff\xfe\t\x80\n\t\n\tnull\n{\t[\n");
    if (has("hangs"))
        pause();
    if (has("becomes another program"))
        execl("/bin/sleep", "sleep", "30", NULL);
    if (has("kills its group"))
        kill(0, SIGKILL);
    if (has("ends its first thread")) {
        pthread_create(&thread, NULL, spin, NULL);
        pthread_exit(NULL);
    }
    if (has("may only read and write"))
        prctl(PR_SET_SECCOMP, 1);
    if (has("rounds down"))
        fesetround(FE_DOWNWARD);
    if (has("interrupts")) {
        struct itimerval often = {{0, 500}, {0, 500}};
        sigaction(SIGALRM, &(struct sigaction){.sa_handler = interrupt}, NULL);
        setitimer(ITIMER_REAL, &often, NULL);
    }
    if (has("burns the CPU"))
        for (int i = 0; i < 4; i++)
            pthread_create(&thread, NULL, burn, NULL);
    if (has("has no CPU time"))
        limit(RLIMIT_CPU, 0);
    if (has("forgets its parent"))
        prctl(PR_SET_PDEATHSIG, 0);
    if (has("closes stdin"))
        close(0);
    if (has("reads stdin"))
        for (char text[4096]; read(0, text, sizeof text) > 0;)
            ;
    if (has("leads a group"))
        setsid();
    if (has("blocks signals"))
        sigfillset(&all), sigprocmask(SIG_SETMASK, &all, NULL);
    if (has("ignores signals"))
        for (int number = 1; number < 32; number++)
            signal(number, SIG_IGN);
    if (has("goes elsewhere") && chdir("/proc/self"))
        abort();
    if (has("empties the environment"))
        clearenv();
    if (has("masks all modes"))
        umask(0777);
    if (has("speaks another language"))
        setlocale(LC_ALL, "de_DE.UTF-8"), setenv("LC_ALL", "de_DE.UTF-8", 1);
    if (has("waits at exit"))
        atexit(wait_at_exit);
    if (has("starts threads"))
        for (int i = 0; i < 50; i++)
            pthread_create(&thread, NULL, spin, NULL);
    if (has("takes memory"))
        memset(malloc(400 << 20), 1, 400 << 20);
    if (has("allows no file"))
        limit(RLIMIT_NOFILE, 0);
    if (has("allows no memory"))
        limit(RLIMIT_AS, 1);
    if (has("sets an alarm"))
        alarm(1);
    if (has("stops"))
        raise(SIGSTOP);
    if (has("exits"))
        exit(0);
    if (has("leaves at once"))
        _exit(0);
    if (has("aborts"))
        abort();
    if (has("ends its parent's pipe"))
        raise(SIGPIPE);
}

__attribute__((constructor)) static void as_loaded(void)
{
    const char *name = getenv("NVML_STANDIN_HABIT");
    habit = name ? name : "";
    if (!strstr(habit, "later"))
        live_up_to_it();
}

/* What it answers from then on, where the name begins with "answers CODE". */
static int at_each_call(void)
{
    static int calls;
    if (++calls == 30 && strstr(habit, "later"))
        live_up_to_it();
    return calls >= 30 && has("answers ") ? atoi(habit + strlen("answers ")) : 0;
}
