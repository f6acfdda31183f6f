import { NftBatch } from '../../kernel/nft/batch.ts';
import type { NftClient } from '../../kernel/nft/client.ts';
import type { Expr } from '../../kernel/nft/expr.ts';
import type { Chain, TableRef } from '../../kernel/nft/objects.ts';
import { type Family, parseIP } from '../../model/ip.ts';

/** The connection whose first packet is traced. */
export interface Connection {
  readonly family: Family;
  readonly protocol: 'TCP' | 'UDP';
  readonly destination: string;
  readonly port: number;
  readonly sourcePort: number;
}

/** Unique to this process, because others may trace at the same time. */
export const TRACE_TABLE = `kube-proxyctl-trace-${process.pid}`;
/** Before conntrack, so that no other rule has changed the packet. */
const PRIORITY = -400;
const protocolNumbers = { TCP: 6, UDP: 17 } as const;

/** Runs `work` while packets of the connection from this node are traced; removes the table afterwards. */
export async function whileTraced<T>(
  nft: NftClient,
  connection: Connection,
  work: () => Promise<T>,
): Promise<T> {
  const family = connection.family === 'IPv4' ? 'ip' : 'ip6';
  const table: TableRef = { family, name: TRACE_TABLE };
  const chain: Chain = {
    table,
    name: 'output',
    base: { type: 'filter', hook: 'output', priority: PRIORITY },
  };
  // Ctrl-C must not leave the table behind; the work takes a second or two.
  const hold = () => {};
  process.on('SIGINT', hold);
  try {
    const rule = { chain, exprs: traceRule(connection) };
    await nft.commit(new NftBatch().add('table', table).add('chain', chain).add('rule', rule));
    try {
      return await work();
    } finally {
      await nft.commit(new NftBatch().delete('table', table));
    }
  } finally {
    process.off('SIGINT', hold);
  }
}

/** Matches the connection and sets nftrace. */
function traceRule({ family, protocol, destination, port, sourcePort }: Connection): Expr[] {
  const address = parseIP(destination)?.bytes ?? new Uint8Array();
  return [
    { kind: 'meta', key: 'l4proto', dreg: 0 },
    { kind: 'cmp', op: 'eq', sreg: 0, value: Uint8Array.of(protocolNumbers[protocol]) },
    {
      kind: 'payload',
      base: 'network',
      offset: family === 'IPv4' ? 16 : 24,
      length: address.length,
      dreg: 0,
    },
    { kind: 'cmp', op: 'eq', sreg: 0, value: address },
    { kind: 'payload', base: 'transport', offset: 0, length: 4, dreg: 0 },
    { kind: 'cmp', op: 'eq', sreg: 0, value: Uint8Array.of(...bigEndian(sourcePort), ...bigEndian(port)) },
    { kind: 'immediate', dreg: 0, value: Uint8Array.of(1) },
    { kind: 'meta-set', key: 'nftrace', sreg: 0 },
  ];
}

function bigEndian(port: number): [number, number] {
  return [port >> 8, port & 0xff];
}
