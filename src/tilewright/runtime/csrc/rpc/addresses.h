/* Which addresses are this machine's own. */
#ifndef TILEWRIGHT_RPC_ADDRESSES_H_
#define TILEWRIGHT_RPC_ADDRESSES_H_

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

/* True for 127.0.0.0/8 and ::1, also written as IPv4 in IPv6. */
static inline bool is_loopback(const struct sockaddr* address) {
  if (address->sa_family == AF_INET) {
    struct sockaddr_in ip;
    memcpy(&ip, address, sizeof ip);
    return ntohl(ip.sin_addr.s_addr) >> 24 == 127;
  }
  if (address->sa_family == AF_INET6) {
    struct sockaddr_in6 ip;
    memcpy(&ip, address, sizeof ip);
    const uint8_t* bytes = ip.sin6_addr.s6_addr;
    return IN6_IS_ADDR_LOOPBACK(&ip.sin6_addr) || (IN6_IS_ADDR_V4MAPPED(&ip.sin6_addr) && bytes[12] == 127);
  }
  return false;
}

#endif
