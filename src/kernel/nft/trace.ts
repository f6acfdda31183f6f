import type { Libc } from '../../native/libc.ts';
import { AttributeMap } from '../netlink/attribute-map.ts';
import { NETLINK_NETFILTER } from '../netlink/constants.ts';
import type { NetlinkMessage } from '../netlink/reader.ts';
import { type NetlinkSubscription, subscribe } from '../netlink/subscription.ts';
import { openTransport } from '../netlink/transport.ts';
import { nameOf } from '../numbers.ts';
import { readVerdictAttributes } from './codec/data.ts';
import { familyNumbers, messageKind, NFNLGRP_NFTRACE, NFT_MSG, verdictCodes } from './constants.ts';
import type { Verdict } from './expr.ts';
import type { NftFamily } from './objects.ts';

const TRACE = {
  TABLE: 1,
  CHAIN: 2,
  RULE_HANDLE: 3,
  TYPE: 4,
  VERDICT: 5,
  ID: 6,
  NETWORK_HEADER: 8,
  TRANSPORT_HEADER: 9,
  IIF: 10,
  OIF: 12,
  POLICY: 16,
} as const;
/** Room for the steps of some hundred packets that come at once. */
const receiveBuffer = 8 << 20;
const traceTypes = { policy: 1, return: 2, rule: 3 } as const;

/** One step of a packet that the kernel traces because a rule set nftrace on it. */
export interface TraceStep {
  /** The same for all steps of one packet. */
  readonly id: number;
  readonly family: NftFamily;
  readonly table: string;
  readonly chain: string;
  /** A rule that matched, the end of a chain without a verdict, or the policy of a base chain. */
  readonly kind: keyof typeof traceTypes;
  readonly ruleHandle?: bigint;
  readonly verdict?: Verdict;
  /** Headers on entry to the base chain; only the packet's first step there has them. */
  readonly network?: Uint8Array;
  readonly transport?: Uint8Array;
  /** Indexes of the interfaces by which the packet came and will leave; only in steps with headers, where known. */
  readonly inInterface?: number;
  readonly outInterface?: number;
}

/** Reads a trace message; undefined for any other message and for incomplete steps. */
export function readTrace(message: NetlinkMessage): TraceStep | undefined {
  if (messageKind(message.type) !== NFT_MSG.TRACE) return undefined;
  const family = nameOf(familyNumbers, message.firstByte);
  const a = AttributeMap.of(message);
  const [id, table, chain] = [a.u32Be(TRACE.ID), a.string(TRACE.TABLE), a.string(TRACE.CHAIN)];
  const kind = nameOf(traceTypes, a.u32Be(TRACE.TYPE));
  if (!family || !kind || id === undefined || table === undefined || chain === undefined) return undefined;
  const ruleHandle = a.u64Be(TRACE.RULE_HANDLE);
  const verdict = kind === 'policy' ? policyOf(a.i32Be(TRACE.POLICY)) : verdictOf(a);
  const [inInterface, outInterface] = [a.u32Be(TRACE.IIF), a.u32Be(TRACE.OIF)];
  const [network, transport] = [a.bytes(TRACE.NETWORK_HEADER), a.bytes(TRACE.TRANSPORT_HEADER)];
  return {
    id,
    family,
    table,
    chain,
    kind,
    ...(ruleHandle !== undefined && { ruleHandle }),
    ...(verdict && { verdict }),
    ...(network && { network }),
    ...(transport && { transport }),
    ...(inInterface !== undefined && { inInterface }),
    ...(outInterface !== undefined && { outInterface }),
  };
}

function verdictOf(a: AttributeMap): Verdict | undefined {
  const attributes = a.nestedMap(TRACE.VERDICT);
  return attributes && readVerdictAttributes(attributes);
}

function policyOf(code: number | undefined): Verdict | undefined {
  const kind = nameOf(verdictCodes, code);
  return kind === 'accept' || kind === 'drop' ? { kind } : undefined;
}

export interface TraceListener {
  step(step: TraceStep): void;
  /** The subscription failed. */
  failed(error: Error): void;
  /** The kernel dropped steps, because they came too fast. */
  lost(): void;
}

/** Subscribes to the steps of all traced packets of this network namespace. Throws SystemError without CAP_NET_ADMIN. */
export function followTraces(libc: Libc, listener: TraceListener): NetlinkSubscription {
  return subscribe(openTransport(libc, NETLINK_NETFILTER, { receiveBuffer }), [NFNLGRP_NFTRACE], {
    message: (message) => {
      const step = readTrace(message);
      if (step) listener.step(step);
    },
    overrun: () => listener.lost(),
    failed: (error) => listener.failed(error),
  });
}
