import type { AskedPacket } from './source.ts';

/** Reads `SRC DST:PORT[/PROTO]`; IPv6 destinations stand in brackets. What is in it is judged by who answers. */
export function readPacket(source: string, destination: string): AskedPacket {
  const [, bracketed, bare, port, protocol] =
    /^(?:\[([^\]]*)\]|([^[\]/]*?)):([^:/]*)(?:\/(.*))?$/.exec(destination) ?? [];
  const address = bracketed ?? bare;
  if (address === undefined || port === undefined) {
    throw new Error(`${JSON.stringify(destination)} is not DST:PORT or DST:PORT/PROTO`);
  }
  if (bracketed === undefined && address.includes(':')) {
    throw new Error(`${JSON.stringify(destination)}: IPv6 addresses stand in brackets, as in [fd00::1]:80`);
  }
  return {
    source: source.replace(/^\[(.*)\]$/, '$1'),
    destination: address,
    port,
    protocol: protocol ?? 'TCP',
  };
}
