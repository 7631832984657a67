/* Records what a process has flushed, for LD_PRELOAD.
 *
 * After each successful fsync or fdatasync of a regular file, a line is appended to the file that
 * URTEIL_FLUSHES names: device, inode, generation of the inode, and the size of the file when the
 * call began: up to there its data are on the disk. A truncation to N bytes appends -1 - N instead.
 * A process that loads this appends a line of zeros: a record without one is of nobody.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define GENERATION _IOR('v', 1, long)

static void record(const struct stat *file, uint32_t generation, long long size)
{
    const char *path = getenv("URTEIL_FLUSHES");
    char line[128];
    int length, out;

    if (path == NULL || (out = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644)) < 0)
        return;
    length = snprintf(line, sizeof line, "%llu %llu %u %lld\n", (unsigned long long)file->st_dev,
                      (unsigned long long)file->st_ino, generation, size);
    if (write(out, line, length) < 0)
        errno = 0;
    close(out);
}

__attribute__((constructor)) static void record_loading(void)
{
    struct stat nothing = {0};

    record(&nothing, 0, 0);
}

/* 0 where the file system has no generations: then a later file of the same inode is not told
 * apart. */
static uint32_t generation_of(int fd)
{
    long generation = 0;

    return ioctl(fd, GENERATION, &generation) < 0 ? 0 : (uint32_t)generation;
}

static int flush(int fd, const char *name)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    struct stat before;
    int is_file = fstat(fd, &before) == 0 && S_ISREG(before.st_mode);
    int result = real(fd), error = errno;

    if (result == 0 && is_file)
        record(&before, generation_of(fd), (long long)before.st_size);
    errno = error;
    return result;
}

static int cut(int fd, off_t size, const char *name)
{
    int (*real)(int, off_t) = (int (*)(int, off_t))dlsym(RTLD_NEXT, name);
    int result = real(fd, size), error = errno;
    struct stat after;

    if (result == 0 && fstat(fd, &after) == 0 && S_ISREG(after.st_mode))
        record(&after, generation_of(fd), -1 - (long long)size);
    errno = error;
    return result;
}

int fsync(int fd)
{
    return flush(fd, "fsync");
}

int fdatasync(int fd)
{
    return flush(fd, "fdatasync");
}

int ftruncate(int fd, off_t size)
{
    return cut(fd, size, "ftruncate");
}

int ftruncate64(int fd, off_t size)
{
    return cut(fd, size, "ftruncate64");
}

/* The file exists as soon as the process has the library. */
__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("URTEIL_FLUSHES");
    int out = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);

    if (out >= 0)
        close(out);
}
