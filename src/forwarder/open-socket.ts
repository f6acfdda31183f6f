import { AF_INET6, IPPROTO_IPV6, IPV6_V6ONLY, type Sockets } from '../native/sockets.ts';
import { SystemError } from '../native/system-error.ts';
import {
  decodeAddress,
  domainOfBytes,
  encodeAddress,
  maxAddressBytes,
  type SocketAddress,
} from './socket-address.ts';

/** Opens a socket bound to an address, for that family only. Throws SystemError. */
export function openSocket(
  sockets: Sockets,
  type: number,
  at: SocketAddress,
  prepare: (fd: number) => void = () => {},
): number {
  const address = encodeAddress(at);
  const domain = domainOfBytes(address);
  const fd = sockets.socket(domain, type);
  if (fd < 0) throw new SystemError('socket', -fd);
  if (domain === AF_INET6) sockets.setOption(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  prepare(fd);
  const result = sockets.bind(fd, address);
  if (result < 0) {
    sockets.close(fd);
    throw new SystemError('bind', -result);
  }
  return fd;
}

/** Returns the port that a socket is bound to. */
export function boundPort(sockets: Sockets, fd: number): number {
  const address = new Uint8Array(maxAddressBytes);
  sockets.getsockname(fd, address);
  return decodeAddress(address).port;
}
