/* Opening libraries in the server: archives of objects, which it links itself, and shared libraries, where the system loads
 * them. A library of either kind is a handle to the rest of the runtime. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../json.h"
#include "loader.h"
#include "sha256.h"

#define MOST_MEMBERS 256
#define TAR_BLOCK 512

typedef struct {
  char name[101];
  const uint8_t* data;
  size_t size;
} Member;

typedef struct Archive {
  struct Archive* next;
  LoadedObjects* code;
  char *functions, *features;
  const void* imports; /* in the mapped file, which stays mapped */
  uint64_t imports_size;
} Archive;

static Archive* archives;
static char problem[512];

/* ---- tar ---- */

static bool read_octal(const char* text, size_t size, uint64_t* out) {
  *out = 0;
  size_t i = 0;
  while (i < size && text[i] == ' ') ++i;
  for (; i < size && text[i] >= '0' && text[i] <= '7'; ++i) *out = *out * 8 + (uint64_t)(text[i] - '0');
  return i > 0 && (i == size || text[i] == 0 || text[i] == ' ') && *out < (uint64_t)1 << 40;
}

/* The regular files of an archive; -1 with an error. Extended headers, which Tilewright does not write, are passed over. */
static int read_members(const uint8_t* data, size_t size, Member* members) {
  int count = 0;
  size_t at = 0;
  while (size - at >= TAR_BLOCK && data[at] != 0) {
    const char* header = (const char*)data + at;
    uint64_t length;
    if (memcmp(header + 257, "ustar", 5) != 0 || !read_octal(header + 124, 12, &length)) return tw_fail("ValueError", "the archive is damaged");
    at += TAR_BLOCK;
    if (length > size - at) return tw_fail("ValueError", "the archive is cut short");
    if (header[156] == '0' || header[156] == 0) {
      if (count == MOST_MEMBERS) return tw_fail("ValueError", "the archive has more than %d members", MOST_MEMBERS);
      memcpy(members[count].name, header, 100);
      members[count].name[100] = 0;
      members[count].data = data + at;
      members[count++].size = (size_t)length;
    }
    uint64_t padded = (length + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
    if (padded > size - at) break;
    at += (size_t)padded;
  }
  return count;
}

static const Member* member_of(const Member* members, int count, const char* name) {
  for (int i = 0; i < count; ++i) {
    if (strcmp(members[i].name, name) == 0) return &members[i];
  }
  return NULL;
}

/* ---- the manifest ---- */

static int32_t check_sums(const TwJson* sums, const Member* members, int count) {
  for (int i = 0; i < count; ++i) {
    if (strcmp(members[i].name, "manifest.json") == 0) continue;
    const TwJson* wanted = tw_json_member(sums, members[i].name);
    uint8_t sum[SHA256_BYTES];
    char text[2 * SHA256_BYTES + 1];
    Sha256 hash;
    sha256_begin(&hash);
    sha256_add(&hash, members[i].data, members[i].size);
    sha256_end(&hash, sum);
    for (int j = 0; j < SHA256_BYTES; ++j) snprintf(text + 2 * j, 3, "%02x", sum[j]);
    if (wanted == NULL || wanted->kind != JSON_STRING || strcmp(wanted->text, text) != 0) {
      return tw_fail("ValueError", "the archive is damaged: the checksum of %s is another", members[i].name);
    }
  }
  return 0;
}

/* The strings of a list, with commas between them. */
static char* joined(const TwJson* list) {
  size_t size = 1;
  for (const TwJson* one = list != NULL ? list->first : NULL; one != NULL; one = one->next) {
    size += one->kind == JSON_STRING ? strlen(one->text) + 1 : 0;
  }
  char* text = calloc(1, size);
  for (const TwJson* one = list != NULL ? list->first : NULL; text != NULL && one != NULL; one = one->next) {
    if (one->kind != JSON_STRING) continue;
    if (text[0] != 0) strcat(text, ",");
    strcat(text, one->text);
  }
  return text;
}

static int32_t read_manifest(Archive* archive, const Member* members, int count) {
  const Member* manifest = member_of(members, count, "manifest.json");
  if (manifest == NULL) return 0; /* a plain archive of objects */
  TwJsonDocument document;
  if (!tw_json_parse((const char*)manifest->data, manifest->size, &document)) return -1;
  int32_t status = check_sums(tw_json_member(document.root, "sha256"), members, count);
  archive->functions = joined(tw_json_member(document.root, "functions"));
  archive->features = joined(tw_json_member(document.root, "features"));
  tw_json_free(&document);
  return status;
}

/* ---- libraries ---- */

static bool is_object(const Member* member) {
  size_t length = strlen(member->name);
  return (length > 2 && strcmp(member->name + length - 2, ".o") == 0) || (length > 4 && strcmp(member->name + length - 4, ".obj") == 0);
}

static int32_t load_members(Archive* archive, const Member* members, int count) {
  ObjectFile files[MOST_MEMBERS];
  int32_t num_files = 0;
  if (read_manifest(archive, members, count) != 0) return -1;
  for (int i = 0; i < count; ++i) {
    if (is_object(&members[i])) files[num_files++] = (ObjectFile){members[i].data, members[i].size};
    if (strcmp(members[i].name, "imports.bin") == 0) {
      archive->imports = members[i].data;
      archive->imports_size = members[i].size;
    }
  }
  if (num_files == 0) return tw_fail("ValueError", "the archive has no object code");
  archive->code = objects_load(files, num_files);
  return archive->code != NULL ? 0 : -1;
}

static Archive* open_archive(const uint8_t* data, size_t size) {
  Member* members = calloc(MOST_MEMBERS, sizeof *members);
  Archive* archive = calloc(1, sizeof *archive);
  int32_t status = members != NULL && archive != NULL ? 0 : tw_fail("MemoryError", "no memory to load a library");
  if (status == 0) {
    int count = 1;
    if (memcmp(data, "\177ELF", 4) == 0) {
      members[0] = (Member){"code.o", data, size};
    } else {
      count = read_members(data, size, members);
    }
    status = count < 0 ? -1 : load_members(archive, members, count);
  }
  free(members);
  if (status == 0) {
    archive->next = archives;
    archives = archive;
    return archive;
  }
  if (archive != NULL) {
    free(archive->functions);
    free(archive->features);
  }
  free(archive);
  return NULL;
}

/* True for an archive, or a relocatable object: not for a shared library. */
static bool is_ours(const uint8_t* data, size_t size) {
  bool is_elf = size >= 64 && memcmp(data, "\177ELF", 4) == 0;
  return is_elf ? data[16] == 1 && data[17] == 0 : size >= TAR_BLOCK && memcmp(data + 257, "ustar", 5) == 0;
}

/* Objects are read as structures, so an archive's have to be aligned as those are: tar aligns members to 512 bytes. */
void* tw_open_library(const char* path) {
  struct stat found;
  problem[0] = 0;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  bool is_file = descriptor >= 0 && fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode) && found.st_size > 0;
  void* data = is_file ? mmap(NULL, (size_t)found.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, descriptor, 0) : MAP_FAILED;
  if (descriptor >= 0) close(descriptor);
  if (data != MAP_FAILED && is_ours(data, (size_t)found.st_size)) {
    Archive* archive = open_archive(data, (size_t)found.st_size);
    if (archive != NULL) return archive;
    snprintf(problem, sizeof problem, "%s", tilewright_error_message());
    munmap(data, (size_t)found.st_size);
    return NULL;
  }
  if (data != MAP_FAILED) munmap(data, (size_t)found.st_size);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    const char* why = dlerror();
    snprintf(problem, sizeof problem, "%s (this server links objects itself: export the module as a .tar)", why != NULL ? why : "refused");
  }
  return library;
}

const char* tw_open_problem(void) { return problem; }

static Archive* archive_of(void* library) {
  Archive* archive = archives;
  while (archive != NULL && archive != library) archive = archive->next;
  return archive;
}

void* tw_find_symbol(void* library, const char* name) {
  Archive* archive = archive_of(library);
  if (archive == NULL) return library != NULL ? dlsym(library, name) : NULL;
  if (archive->imports != NULL && strcmp(name, "__tilewright_imports") == 0) return (void*)(uintptr_t)archive->imports;
  if (archive->imports != NULL && strcmp(name, "__tilewright_imports_size") == 0) return &archive->imports_size;
  if (archive->functions != NULL && strcmp(name, "__tilewright_functions") == 0) return archive->functions;
  if (archive->features != NULL && strcmp(name, "__tilewright_features") == 0) return archive->features;
  return objects_symbol(archive->code, name);
}

/* Nothing of another program is in this process. */
void* tw_process_symbol(const char* name) {
  (void)name;
  return NULL;
}

void tw_pin_library(void) {}
