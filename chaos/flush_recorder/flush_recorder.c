/* Records what a process has flushed, for LD_PRELOAD.
 *
 * The file that URTEIL_FLUSHES names gets a line for each of these, after the call unless said
 * otherwise. A file is its device, inode and generation, a directory its device and inode.
 *
 *   loaded                                 by each process: a record without one is of nobody
 *   flushed FILE SIZE                      fsync, fdatasync: its data up to SIZE are on the disk
 *   cut FILE SIZE                          ftruncate
 *   entries DIRECTORY                      fsync of a directory: its entries are on the disk
 *   created NS DIRECTORY NAME              before open, mkdir
 *   renamed NS DIRECTORY NAME NEW KEPT     before rename within the directory
 *   removed NS DIRECTORY NAME KEPT         before unlink
 *   failed DIRECTORY NAME                  the last of these three for NAME did not happen
 *
 * The lines of entries come before their calls, so a flush never stands behind a change that it
 * covers. NS is the monotonic clock. KEPT is another name of the file that the call replaces or
 * removes, in the folder URTEIL_FLUSHES.kept; - if there is none.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define GENERATION _IOR('v', 1, long)
#define REAL(name, type) ((type)dlsym(RTLD_NEXT, name))

/* An entry of a directory. */
struct entry {
    unsigned long long device, inode;
    char name[256];
};

static void record(const char *format, ...)
{
    const char *path = getenv("URTEIL_FLUSHES");
    int error = errno, length, out;
    char line[1024];
    va_list arguments;

    va_start(arguments, format);
    length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (path != NULL && length < (int)sizeof line
        && (out = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
                          0644)) >= 0) {
        if (write(out, line, length) < 0)
            errno = 0;
        close(out);
    }
    errno = error;
}

__attribute__((constructor)) static void record_loading(void)
{
    record("loaded\n");
}

/* Not by clock_gettime, which another library may shift. */
static long long now_ns(void)
{
    struct timespec now = {0};

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* 0 where the file system has no generations: then a later file of the same inode is not told
 * apart. */
static uint32_t generation_of(int fd)
{
    long generation = 0;

    return ioctl(fd, GENERATION, &generation) < 0 ? 0 : (uint32_t)generation;
}

static void record_file(const char *what, int fd, const struct stat *file, long long size)
{
    record("%s %llu %llu %u %lld\n", what, (unsigned long long)file->st_dev,
           (unsigned long long)file->st_ino, generation_of(fd), size);
}

static int flush(int fd, const char *name)
{
    struct stat before = {0};
    int is_known = fstat(fd, &before) == 0;
    int result = REAL(name, int (*)(int))(fd), error = errno;

    if (result == 0 && is_known && S_ISREG(before.st_mode))
        record_file("flushed", fd, &before, (long long)before.st_size);
    else if (result == 0 && is_known && S_ISDIR(before.st_mode))
        record("entries %llu %llu\n", (unsigned long long)before.st_dev,
               (unsigned long long)before.st_ino);
    errno = error;
    return result;
}

static int cut(int fd, off_t size, const char *name)
{
    int result = REAL(name, int (*)(int, off_t))(fd, size), error = errno;
    struct stat after;

    if (result == 0 && fstat(fd, &after) == 0 && S_ISREG(after.st_mode))
        record_file("cut", fd, &after, (long long)size);
    errno = error;
    return result;
}

/* Whether the path has an entry that can be recorded; a name with a blank cannot. */
static int find_entry(int at, const char *path, struct entry *entry)
{
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    char folder[4096];
    struct stat status;
    int error = errno, is_found;

    if (getenv("URTEIL_FLUSHES") == NULL || *name == 0 || strlen(name) >= sizeof entry->name
        || strpbrk(name, " \n") != NULL || (size_t)(name - path) >= sizeof folder)
        return 0;
    memcpy(folder, path, name - path);
    folder[name - path] = 0;
    is_found = fstatat(at, name == path ? "." : folder, &status, 0) == 0;
    errno = error;
    if (!is_found)
        return 0;
    entry->device = status.st_dev;
    entry->inode = status.st_ino;
    strcpy(entry->name, name);
    return 1;
}

static int exists(int at, const char *path)
{
    struct stat status;
    int error = errno, found = fstatat(at, path, &status, AT_SYMLINK_NOFOLLOW) == 0;

    errno = error;
    return found;
}

/* Another name for a file that is about to be replaced or removed. */
static void keep(int at, const char *path, char *kept, size_t size)
{
    const char *folder = getenv("URTEIL_FLUSHES");
    char target[4096];
    int error = errno;

    snprintf(kept, size, "%d.%d.%lld", (int)getpid(), (int)syscall(SYS_gettid), now_ns());
    snprintf(target, sizeof target, "%s.kept", folder);
    syscall(SYS_mkdirat, AT_FDCWD, target, 0755);
    snprintf(target, sizeof target, "%s.kept/%s", folder, kept);
    if (linkat(at, path, AT_FDCWD, target, 0) < 0)
        strcpy(kept, "-");
    errno = error;
}

static int record_creation(int at, const char *path, struct entry *entry)
{
    if (!find_entry(at, path, entry) || exists(at, path))
        return 0;
    record("created %lld %llu %llu %s\n", now_ns(), entry->device, entry->inode, entry->name);
    return 1;
}

static void record_failure(const struct entry *entry)
{
    record("failed %llu %llu %s\n", entry->device, entry->inode, entry->name);
}

static int make_file(int at, const char *path, int flags, mode_t mode, const char *name)
{
    struct entry entry;
    int is_new = (flags & O_CREAT) && record_creation(at, path, &entry);
    int result = REAL(name, int (*)(int, const char *, int, ...))(at, path, flags, mode);

    if (result < 0 && is_new)
        record_failure(&entry);
    return result;
}

static int move(int at, const char *path, int to, const char *target)
{
    struct entry old, new;
    char kept[64];
    int result, is_known = find_entry(at, path, &old) && find_entry(to, target, &new)
                           && old.device == new.device && old.inode == new.inode;

    if (is_known) {
        keep(to, target, kept, sizeof kept);
        record("renamed %lld %llu %llu %s %s %s\n", now_ns(), old.device, old.inode, old.name,
               new.name, kept);
    }
    result = REAL("renameat", int (*)(int, const char *, int, const char *))(at, path, to, target);
    if (result < 0 && is_known)
        record_failure(&old);
    return result;
}

static int remove_file(int at, const char *path, int flags)
{
    struct entry entry;
    char kept[64];
    int result, is_known = !(flags & AT_REMOVEDIR) && find_entry(at, path, &entry);

    if (is_known) {
        keep(at, path, kept, sizeof kept);
        record("removed %lld %llu %llu %s %s\n", now_ns(), entry.device, entry.inode, entry.name,
               kept);
    }
    result = REAL("unlinkat", int (*)(int, const char *, int))(at, path, flags);
    if (result < 0 && is_known)
        record_failure(&entry);
    return result;
}

#define MODE(last, flags, mode) \
    mode_t mode = 0; \
    va_list arguments; \
    va_start(arguments, last); \
    if ((flags) & (O_CREAT | O_TMPFILE)) \
        mode = va_arg(arguments, mode_t); \
    va_end(arguments)

int open(const char *path, int flags, ...)
{
    MODE(flags, flags, mode);
    return make_file(AT_FDCWD, path, flags, mode, "openat");
}

int open64(const char *path, int flags, ...)
{
    MODE(flags, flags, mode);
    return make_file(AT_FDCWD, path, flags, mode, "openat64");
}

int openat(int at, const char *path, int flags, ...)
{
    MODE(flags, flags, mode);
    return make_file(at, path, flags, mode, "openat");
}

int openat64(int at, const char *path, int flags, ...)
{
    MODE(flags, flags, mode);
    return make_file(at, path, flags, mode, "openat64");
}

int mkdir(const char *path, mode_t mode)
{
    struct entry entry;
    int is_new = record_creation(AT_FDCWD, path, &entry);
    int result = REAL("mkdir", int (*)(const char *, mode_t))(path, mode);

    if (result < 0 && is_new)
        record_failure(&entry);
    return result;
}

int rename(const char *path, const char *target)
{
    return move(AT_FDCWD, path, AT_FDCWD, target);
}

int renameat(int at, const char *path, int to, const char *target)
{
    return move(at, path, to, target);
}

int unlink(const char *path)
{
    return remove_file(AT_FDCWD, path, 0);
}

int unlinkat(int at, const char *path, int flags)
{
    return remove_file(at, path, flags);
}

/* As glibc's, which would not call the unlink above. */
int remove(const char *path)
{
    struct stat status;
    int is_directory = lstat(path, &status) == 0 && S_ISDIR(status.st_mode);

    return remove_file(AT_FDCWD, path, is_directory ? AT_REMOVEDIR : 0);
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
