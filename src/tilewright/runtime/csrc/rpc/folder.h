/* The folder of a session. No path leads out of it, whatever is in it. */
#ifndef TILEWRIGHT_RPC_FOLDER_H_
#define TILEWRIGHT_RPC_FOLDER_H_

#include "values.h"

typedef struct {
  int descriptor;
  char path[512];
  uint64_t used, most; /* bytes in files */
} Folder;

/* Makes an empty folder below another one; -1 with an error. */
int32_t folder_create(Folder* folder, const char* parent, uint64_t most);

/* Removes it with all that is in it; never follows a symbolic link. */
void folder_remove(const char* path);

/* A file to be written as a whole: `folder_commit` gives it its name, anything else leaves no trace. */
typedef struct {
  int parent;     /* descriptor of the folder that it is in */
  int descriptor;
  char name[1025], temporary[64];
  uint64_t replaced; /* bytes of the file that it replaces */
} FolderFile;

int32_t folder_begin_file(Folder* folder, const char* path, uint64_t size, FolderFile* out);
int32_t folder_write(FolderFile* file, const void* data, size_t size);
int32_t folder_end_file(Folder* folder, FolderFile* file, uint64_t size, bool is_complete);

/* A regular file, opened for reading, and its size; -1 with an error. */
int folder_open_file(Folder* folder, const char* path, uint64_t* size);

int32_t folder_remove_file(Folder* folder, const char* path);

/* A list of names, folders with a slash, sorted. */
int32_t folder_list(Folder* folder, const char* path, TVMFFIAny* out);

/* The absolute path of a regular file, for the loader; -1 with an error. */
int32_t folder_path_of(Folder* folder, const char* path, char* out, size_t size);

#endif
