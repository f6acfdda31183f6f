import {
  formatRealServer,
  type RealServer,
  type VirtualServer,
  type VirtualServerKey,
  virtualServerFlags,
} from '../../kernel/ipvs/objects.ts';
import { joinHostPort } from '../../model/ip.ts';

const serviceOptions = { TCP: '-t', UDP: '-u', SCTP: '--sctp-service' } as const;

const maglevFlags = [
  [virtualServerFlags.mhFallback, 'mh-fallback'],
  [virtualServerFlags.mhPort, 'mh-port'],
] as const;

/** A virtual server as `ipvsadm -Sn` prints it: `-A -t 10.96.0.1:80 -s rr -p 10800`. */
export function serverText(server: VirtualServer): string {
  const { scheduler, flags, timeout } = server;
  const persistence = flags & virtualServerFlags.persistent ? ` -p ${timeout}` : '';
  const maglev = maglevFlags.filter(([bit]) => flags & bit).map(([, name]) => name);
  const options = maglev.length > 0 ? ` -b ${maglev.join(',')}` : '';
  return `-A ${place(server)} -s ${scheduler}${persistence}${options}`;
}

/** A real server of it: `-a -t 10.96.0.1:80 -r 10.0.0.1:8080 -m -w 1`. */
export function realServerText(server: VirtualServerKey, real: RealServer): string {
  return `-a ${place(server)} -r ${formatRealServer(real)} -m -w ${real.weight}`;
}

function place({ address, port, protocol }: VirtualServerKey): string {
  return `${serviceOptions[protocol]} ${joinHostPort(address, port)}`;
}
