import { MessageWriter } from '../netlink/writer.ts';
import type { Expr } from './expr.ts';

const NFTA_LOG = { GROUP: 1, SNAPLEN: 3 } as const;

/** `log group N snaplen B`: the packet goes on, and a copy of its first bytes to the program that has the group. */
export function logToGroup(group: number, bytes: number): Expr {
  const writer = new MessageWriter();
  writer.u16Be(NFTA_LOG.GROUP, group);
  writer.u32Be(NFTA_LOG.SNAPLEN, bytes);
  return { kind: 'unknown', name: 'log', data: writer.bytes().slice() };
}
