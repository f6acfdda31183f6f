import type { AskedPacket } from './source.ts';

/** Splits `SRC DST:PORT[/PROTO]`, with IPv6 destinations in brackets. The report source checks the parts. */
export function readPacket(source: string, destination: string): AskedPacket {
  const [, bracketed, bare, port, protocol] =
    /^(?:\[([^\]]*)\]|([^[\]/]*?)):([^:/]*)(?:\/(.*))?$/.exec(destination) ?? [];
  const address = bracketed ?? bare;
  if (address === undefined || port === undefined) {
    throw new Error(`${JSON.stringify(destination)} is not DST:PORT or DST:PORT/PROTO`);
  }
  if (bracketed === undefined && address.includes(':')) {
    throw new Error(`${JSON.stringify(destination)}: IPv6 addresses need brackets, as in [fd00::1]:80`);
  }
  return {
    source: source.replace(/^\[(.*)\]$/, '$1'),
    destination: address,
    port,
    protocol: protocol ?? 'TCP',
  };
}
