import type { NetworkInterfaceInfo } from 'node:os';
import type { SystemFiles } from '../../kernel/system-files.ts';
import { type Family, isLoopback, isUnspecified, parseIP } from '../../model/ip.ts';

export interface HostAddressOptions {
  readonly family: Family;
  readonly bindAddress: string;
  /** The node's address in this family, from the cluster or the configuration. */
  readonly nodeIP: string;
  readonly interfaces: Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>;
  readonly files: Pick<SystemFiles, 'read'>;
}

/** Throws for loopback addresses: proxy sockets there could not be reached from outside. */
export function checkBindAddress(bindAddress: string): void {
  if (bindAddress !== '127.0.0.1' && bindAddress !== '::1') return;
  throw new Error(
    `bindAddress ${JSON.stringify(bindAddress)} cannot be used in userspace mode: it is only reachable from this host`,
  );
}

/**
 * The address that proxy sockets listen on: the one to bind to when that is a particular one, else the node's own when
 * it is on an interface, else the first global one of an interface with a default route, else any global one.
 */
export function hostAddress(options: HostAddressOptions): string {
  const { family, bindAddress, nodeIP, interfaces } = options;
  const bound = parseIP(bindAddress);
  if (bound && bound.family === family && !isUnspecified(bound)) return bindAddress;
  const usable = usableAddresses(interfaces, family);
  const all = usable.map(([, address]) => address);
  const node = parseIP(nodeIP);
  if (node && !isLoopback(node) && all.includes(nodeIP)) return nodeIP;
  const routed = devicesWithDefaultRoute(options);
  const [, address] = usable.find(([device]) => routed.has(device)) ?? usable[0] ?? ['', ''];
  return address || (family === 'IPv4' ? '127.0.0.1' : '::1');
}

function usableAddresses(interfaces: HostAddressOptions['interfaces'], family: Family): [string, string][] {
  return Object.entries(interfaces).flatMap(([device, addresses = []]) =>
    addresses
      .filter((each) => each.family === family && isGlobalUnicast(each.address))
      .map(({ address }): [string, string] => [device, address]),
  );
}

function isGlobalUnicast(text: string): boolean {
  const ip = parseIP(text);
  if (!ip || isLoopback(ip) || isUnspecified(ip)) return false;
  const [first = 0, second = 0] = ip.bytes;
  const isLinkLocal =
    ip.family === 'IPv4' ? first === 169 && second === 254 : first === 0xfe && (second & 0xc0) === 0x80;
  return !isLinkLocal && first !== 0xff && (ip.family === 'IPv6' || first < 224);
}

/** From the kernel's routing tables; none when they cannot be read. */
function devicesWithDefaultRoute({ family, files }: HostAddressOptions): Set<string> {
  const read = (path: string): string[][] => {
    try {
      return files
        .read(path)
        .trim()
        .split('\n')
        .map((line) => line.trim().split(/\s+/));
    } catch {
      return [];
    }
  };
  const zero = /^0+$/;
  if (family === 'IPv4') {
    const routes = read('/proc/net/route').filter(
      ([, to = '', , , , , , mask = '']) => zero.test(to) && zero.test(mask),
    );
    return new Set(routes.flatMap(([device]) => device ?? []));
  }
  const routes = read('/proc/net/ipv6_route').filter(
    ([to = '', length = '']) => zero.test(to) && zero.test(length),
  );
  return new Set(routes.flatMap((fields) => fields.at(-1) ?? []));
}
