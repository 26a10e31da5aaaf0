/* One session, from its first frame to its end. */
#ifndef TILEWRIGHT_RPC_SERVE_H_
#define TILEWRIGHT_RPC_SERVE_H_

#include "channel.h"
#include "folder.h"

#define FRAME_HEADER 16
enum {
  FRAME_OPEN = 0x01,
  FRAME_GET_FUNCTION = 0x02,
  FRAME_CALL = 0x03,
  FRAME_FREE = 0x04,
  FRAME_ARRAY_NEW = 0x05,
  FRAME_ARRAY_WRITE = 0x06,
  FRAME_ARRAY_READ = 0x07,
  FRAME_ARRAY_COPY = 0x08,
  FRAME_FILE_WRITE = 0x09,
  FRAME_FILE_READ = 0x0A,
  FRAME_FILE_REMOVE = 0x0B,
  FRAME_FILE_LIST = 0x0C,
  FRAME_MODULE_LOAD = 0x0D,
  FRAME_MODULE_FUNCTION = 0x0E,
  FRAME_MODULE_IMPORT = 0x0F,
  FRAME_TIME = 0x10,
  FRAME_DEVICE_ATTRIBUTE = 0x11,
  FRAME_DEVICE_SYNC = 0x12,
  FRAME_SYSTEM_LIB = 0x13,
  FRAME_PING = 0x14,
  FRAME_CLOSE = 0x15,
  FRAME_OK = 0x80,
  FRAME_ERROR = 0x81
};

typedef struct Session {
  Channel* channel;
  Folder folder;
  Objects objects;
  uint64_t most_bulk;
  uint64_t bulk_left; /* of the request that is handled */
} Session;

/* Handles requests until the client closes the session, or is gone. The folder is left to the caller. */
void serve(Session* session);

/* Sends a whole answer with a head and no bulk. */
bool send_frame(Channel* channel, uint8_t type, const void* head, size_t size);

/* Sends the thread's error, and clears it. */
bool send_error(Channel* channel);

/* The module in a file of the session's folder. */
int32_t load_path(Session* session, const char* path, TVMFFIAny* result);

/* The functions that every server has, by name; NULL without an error. */
TilewrightObject* own_function_of(Session* session, const char* name);

#endif
