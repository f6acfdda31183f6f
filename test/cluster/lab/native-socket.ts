import { parseIP } from '../../../src/model/ip.ts';
import { loadLibc } from '../../../src/native/koffi-libc.ts';
import { AF_INET, AF_INET6, SOL_IP, SOL_IPV6 } from '../../../src/native/libc.ts';

const IP_FREEBIND = 15;
const IPV6_FREEBIND = 78;

/** For sockets that Node.js cannot make. */
export const libc = await loadLibc();

/** Opens a socket at an address, also at one that no interface has: hosts represent whole networks. */
export function boundSocket(type: number, protocol: number, port: number, address: string): number {
  const isV6 = address.includes(':');
  const fd = libc.socket(isV6 ? AF_INET6 : AF_INET, type, protocol);
  try {
    const yes = new Uint8Array(Int32Array.of(1).buffer);
    if (isV6) libc.setsockopt(fd, SOL_IPV6, IPV6_FREEBIND, yes);
    else libc.setsockopt(fd, SOL_IP, IP_FREEBIND, yes);
    libc.bind(fd, socketAddress(address, port));
  } catch (error) {
    libc.close(fd);
    throw error;
  }
  return fd;
}

/** struct sockaddr_in or sockaddr_in6. */
export function socketAddress(text: string, port: number): Uint8Array {
  const ip = parseIP(text);
  if (!ip) throw new Error(`no IP address: ${JSON.stringify(text)}`);
  const isV6 = ip.family === 'IPv6';
  const address = new Uint8Array(isV6 ? 28 : 16);
  address.set(new Uint8Array(Uint16Array.of(isV6 ? AF_INET6 : AF_INET).buffer), 0);
  new DataView(address.buffer).setUint16(2, port);
  address.set(ip.bytes, isV6 ? 8 : 4);
  return address;
}
