#define _GNU_SOURCE
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_PATH 1024
#define MOST_NAMES 16
#define MOST_ENTRIES MOST_VALUES

static int32_t refused(const char* path, const char* why) {
  return tw_fail("PermissionError", "the path %.200s is refused: %s", path, why);
}

static int32_t failed(const char* what, const char* path) {
  const char* kind = errno == ENOENT ? "FileNotFoundError" : errno == ELOOP || errno == ENOTDIR ? "PermissionError" : "OSError";
  return tw_fail(kind, "cannot %s %.200s: %s", what, path, strerror(errno));
}

int32_t folder_create(Folder* folder, const char* parent, uint64_t most) {
  memset(folder, 0, sizeof *folder);
  folder->most = most;
  folder->descriptor = -1;
  int size = snprintf(folder->path, sizeof folder->path, "%s/tw-rpc-XXXXXX", parent);
  if (size < 0 || size >= (int)sizeof folder->path) return tw_fail("ValueError", "the path of the folder is too long");
  if (mkdtemp(folder->path) == NULL) return failed("create", folder->path);
  folder->descriptor = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return folder->descriptor >= 0 ? 0 : failed("open", folder->path);
}

static void remove_content(int parent, int depth) {
  DIR* listing = fdopendir(dup(parent));
  if (listing == NULL) return;
  const struct dirent* entry;
  while ((entry = readdir(listing)) != NULL) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (unlinkat(parent, entry->d_name, 0) == 0) continue;
    int inner = openat(parent, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0) continue;
    if (depth < 64) remove_content(inner, depth + 1);
    close(inner);
    unlinkat(parent, entry->d_name, AT_REMOVEDIR);
  }
  closedir(listing);
}

void folder_remove(const char* path) {
  int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return;
  remove_content(descriptor, 0);
  close(descriptor);
  rmdir(path);
}

static int32_t check_path(const char* path) {
  size_t length = strlen(path);
  if (length == 0) return refused(path, "it is empty");
  if (length > MOST_PATH) return refused(path, "it is too long");
  if (path[0] == '/') return refused(path, "it is absolute");
  if (strpbrk(path, "\\:") != NULL) return refused(path, "it has a backslash or a colon in it");
  int names = 0;
  for (const char* at = path; at != NULL; at = strchr(at, '/'), at = at != NULL ? at + 1 : NULL) {
    size_t size = strcspn(at, "/");
    if (size == 0) return refused(path, "a name in it is empty");
    if ((size == 1 && at[0] == '.') || (size == 2 && at[0] == '.' && at[1] == '.')) return refused(path, "a name in it is . or ..");
    if (++names > MOST_NAMES) return refused(path, "it has too many names");
  }
  return 0;
}

/* The folder that a path is in, as a descriptor to be closed, and the last name; -1 with an error. */
static int enter(const Folder* folder, const char* path, bool creates, const char** name) {
  if (check_path(path) != 0) return -1;
  int at = dup(folder->descriptor);
  while (at >= 0) {
    size_t size = strcspn(path, "/");
    if (path[size] == 0) {
      *name = path;
      return at;
    }
    char part[MOST_PATH + 1];
    memcpy(part, path, size);
    part[size] = 0;
    if (creates) (void)mkdirat(at, part, 0700);
    int inner = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0) failed("open", path);
    close(at);
    at = inner;
    path += size + 1;
    if (inner < 0) return -1;
  }
  return failed("open", path);
}

int32_t folder_begin_file(Folder* folder, const char* path, uint64_t size, FolderFile* out) {
  const char* name;
  memset(out, 0, sizeof *out);
  out->descriptor = -1;
  out->parent = enter(folder, path, true, &name);
  if (out->parent < 0) return -1;
  memcpy(out->name, name, strlen(name) + 1);
  struct stat found;
  if (fstatat(out->parent, name, &found, AT_SYMLINK_NOFOLLOW) == 0) {
    if (!S_ISREG(found.st_mode)) {
      close(out->parent);
      return refused(path, "there is something else than a regular file");
    }
    out->replaced = (uint64_t)found.st_size;
  }
  uint64_t others = folder->used - (out->replaced < folder->used ? out->replaced : folder->used);
  if (others > folder->most || size > folder->most - others) {
    close(out->parent);
    return tw_fail("OSError", "the session's folder may hold %llu bytes", (unsigned long long)folder->most);
  }
  static unsigned count;
  snprintf(out->temporary, sizeof out->temporary, ".writing-%u", ++count);
  out->descriptor = openat(out->parent, out->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (out->descriptor >= 0) return 0;
  failed("write", path);
  close(out->parent);
  return -1;
}

int32_t folder_write(FolderFile* file, const void* data, size_t size) {
  const char* at = data;
  while (size > 0) {
    ssize_t count = write(file->descriptor, at, size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return failed("write", file->name);
    at += count;
    size -= (size_t)count;
  }
  return 0;
}

int32_t folder_end_file(Folder* folder, FolderFile* file, uint64_t size, bool is_complete) {
  int32_t status = is_complete ? 0 : -1;
  if (close(file->descriptor) != 0 && status == 0) status = failed("write", file->name);
  if (status == 0 && renameat(file->parent, file->temporary, file->parent, file->name) != 0) status = failed("write", file->name);
  if (status == 0) {
    folder->used = folder->used - (file->replaced < folder->used ? file->replaced : folder->used) + size;
  } else {
    unlinkat(file->parent, file->temporary, 0);
  }
  close(file->parent);
  return status;
}

int folder_open_file(Folder* folder, const char* path, uint64_t* size) {
  const char* name;
  int parent = enter(folder, path, false, &name);
  if (parent < 0) return -1;
  /* Not blocking, so that a named pipe that somebody made there does not hold the session up. */
  int descriptor = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  close(parent);
  if (descriptor < 0) return failed("open", path);
  struct stat found;
  if (fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode)) {
    *size = (uint64_t)found.st_size;
    return descriptor;
  }
  close(descriptor);
  return refused(path, "it is not a regular file");
}

int32_t folder_remove_file(Folder* folder, const char* path) {
  uint64_t size;
  int descriptor = folder_open_file(folder, path, &size);
  if (descriptor < 0) return -1;
  close(descriptor);
  const char* name;
  int parent = enter(folder, path, false, &name);
  if (parent < 0) return -1;
  int32_t status = unlinkat(parent, name, 0) == 0 ? 0 : failed("remove", path);
  close(parent);
  if (status == 0) folder->used -= size < folder->used ? size : folder->used;
  return status;
}

static int compare_names(const void* a, const void* b) { return strcmp(*(char* const*)a, *(char* const*)b); }

/* The names in a folder, to be freed each; -1 with an error. */
static int read_names(DIR* listing, char** names) {
  int count = 0;
  const struct dirent* entry;
  while ((entry = readdir(listing)) != NULL) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    struct stat found;
    if (fstatat(dirfd(listing), entry->d_name, &found, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (count == MOST_ENTRIES - 1) break;
    size_t size = strlen(entry->d_name) + 2;
    names[count] = malloc(size);
    if (names[count] == NULL) return count;
    snprintf(names[count++], size, "%s%s", entry->d_name, S_ISDIR(found.st_mode) ? "/" : "");
  }
  return count;
}

int32_t folder_list(Folder* folder, const char* path, TVMFFIAny* out) {
  int descriptor = -1;
  if (path[0] == 0) {
    descriptor = dup(folder->descriptor);
  } else {
    const char* name;
    int parent = enter(folder, path, false, &name);
    if (parent < 0) return -1;
    descriptor = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    close(parent);
  }
  DIR* listing = descriptor >= 0 ? fdopendir(descriptor) : NULL;
  if (listing == NULL) {
    failed("list", path);
    if (descriptor >= 0) close(descriptor);
    return -1;
  }
  rewinddir(listing);
  char** names = calloc(MOST_ENTRIES, sizeof *names);
  TVMFFIAny* values = calloc(MOST_ENTRIES, sizeof *values);
  int32_t status = names != NULL && values != NULL ? 0 : tw_fail("MemoryError", "no memory for the names in a folder");
  int count = status == 0 ? read_names(listing, names) : 0;
  closedir(listing);
  if (count > 0) qsort(names, (size_t)count, sizeof *names, compare_names);
  for (int i = 0; status == 0 && i < count; ++i) status = tilewright_make_string(names[i], strlen(names[i]), &values[i]);
  TilewrightObject* list = NULL;
  if (status == 0) status = tilewright_data_create(0, values, count, &list);
  for (int i = 0; i < count; ++i) {
    tilewright_any_release(&values[i]);
    free(names[i]);
  }
  free(names);
  free(values);
  if (status == 0) *out = (TVMFFIAny){.type_index = TILEWRIGHT_DATA, .v_obj = list};
  return status;
}

int32_t folder_path_of(Folder* folder, const char* path, char* out, size_t size) {
  uint64_t unused;
  int descriptor = folder_open_file(folder, path, &unused);
  if (descriptor < 0) return -1;
  close(descriptor);
  int written = snprintf(out, size, "%s/%s", folder->path, path);
  return written > 0 && written < (int)size ? 0 : refused(path, "it is too long");
}
