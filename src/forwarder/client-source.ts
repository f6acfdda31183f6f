import type { Family } from '../model/ip.ts';
import { loadSockets } from '../native/koffi-sockets.ts';
import {
  AF_INET,
  AF_INET6,
  IP_BIND_ADDRESS_NO_PORT,
  IP_TRANSPARENT,
  IPPROTO_IP,
  IPPROTO_IPV6,
  IPV6_TRANSPARENT,
  SO_MARK,
  SOCK_STREAM,
  SOL_SOCKET,
  type Sockets,
} from '../native/sockets.ts';
import { errnoName } from '../native/system-error.ts';
import { addressBytes, domainOfBytes, withoutPort } from './socket-address.ts';

/**
 * Packets of connections that are made from a client's address carry this mark. Whoever asks for such connections has
 * rules that bring the answers here: the endpoint sends them to the client. Kubernetes, Calico, Cilium, Istio and Weave use
 * other bits.
 */
export const clientSourceMark = 0x1000;

/**
 * Whether the endpoint can see the client's own address. An endpoint that is the client cannot: it would answer itself. A
 * link-local address means something else on another link.
 */
export function canKeepSource(client: Uint8Array, endpoint: Uint8Array): boolean {
  const [from, to] = [addressBytes(client), addressBytes(endpoint)];
  if (from.length !== to.length || isLinkLocal(from)) return false;
  return from.some((byte, i) => byte !== to[i]);
}

/**
 * Makes a socket connect from the client's address, at a port that the kernel chooses when it connects. Returns 0, or a
 * negative errno value: -EPERM without CAP_NET_ADMIN.
 */
export function bindToClient(sockets: Sockets, fd: number, client: Uint8Array): number {
  const transparent = setTransparent(sockets, fd, domainOfBytes(client));
  if (transparent < 0) return transparent;
  const marked = sockets.setOption(fd, SOL_SOCKET, SO_MARK, clientSourceMark);
  if (marked < 0) return marked;
  // Otherwise a client's connections to all endpoints together could not be more than there are ports.
  sockets.setOption(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  return sockets.bind(fd, withoutPort(client));
}

/** Why connections cannot be made from clients' addresses; undefined when they can. */
export async function clientSourceObstacle(family: Family): Promise<string | undefined> {
  const sockets = await loadSockets();
  const domain = family === 'IPv4' ? AF_INET : AF_INET6;
  const fd = sockets.socket(domain, SOCK_STREAM);
  if (fd < 0) return `no socket: ${errnoName(-fd)}`;
  const result = setTransparent(sockets, fd, domain);
  sockets.close(fd);
  return result < 0 ? `no transparent sockets: ${errnoName(-result)}` : undefined;
}

function setTransparent(sockets: Sockets, fd: number, domain: number): number {
  return domain === AF_INET
    ? sockets.setOption(fd, IPPROTO_IP, IP_TRANSPARENT, 1)
    : sockets.setOption(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, 1);
}

/** fe80::/10. */
function isLinkLocal({ length, 0: first = 0, 1: second = 0 }: Uint8Array): boolean {
  return length === 16 && first === 0xfe && (second & 0xc0) === 0x80;
}
