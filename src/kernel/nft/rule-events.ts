import type { Family } from '../../model/ip.ts';
import type { Libc } from '../../native/libc.ts';
import { AttributeMap } from '../netlink/attribute-map.ts';
import { NETLINK_NETFILTER } from '../netlink/constants.ts';
import { NetlinkFormatError, type NetlinkMessage } from '../netlink/reader.ts';
import { type DrainableSubscription, subscribe } from '../netlink/subscription.ts';
import { type NetlinkTransport, openTransport } from '../netlink/transport.ts';
import { addressFamilies, nameOf } from '../numbers.ts';
import type { Committer } from '../process-name.ts';
import { messageKind, NFNLGRP_NFTABLES, NFT_MSG, NFTA_CHAIN, NFTA_RULE, NFTA_TABLE } from './constants.ts';
import { readGeneration } from './event-decoder.ts';

/**
 * The place of a change of the ruleset. Rules of the iptables programs cannot be decoded, so only table and chain are
 * read. That is also cheap for thousands of events.
 */
export interface RuleEvent {
  readonly port: number;
  readonly family: Family;
  readonly type: 'added' | 'deleted';
  readonly kind: 'table' | 'chain' | 'rule';
  readonly table: string;
  /** Empty for a table. */
  readonly chain: string;
}

export interface RuleEventListener {
  event(event: RuleEvent): void;
  /** A transaction of the program with this netlink port is complete. */
  committed(port: number, by: Committer): void;
  /** Events were lost. */
  overrun(): void;
  /** The subscription failed and delivers nothing more. */
  failed(error: Error): void;
}

export interface RuleSubscription extends DrainableSubscription {
  /** Attaches a socket filter (ignorePorts). */
  attachFilter(program: Uint8Array): void;
}

/** Room for the notifications of another program's large transaction. */
const receiveBuffer = 16 << 20;

export function openRuleEvents(libc: Libc): (listener: RuleEventListener) => RuleSubscription {
  return (listener) => subscribeRules(openTransport(libc, NETLINK_NETFILTER, { receiveBuffer }), listener);
}

/** Subscribes to changes of tables, chains and rules of the families ip and ip6 by any program. */
export function subscribeRules(transport: NetlinkTransport, listener: RuleEventListener): RuleSubscription {
  const subscription = subscribe(transport, [NFNLGRP_NFTABLES], {
    message: (message) => deliver(message, listener),
    overrun: () => listener.overrun(),
    failed: (error) => listener.failed(error),
  });
  return { ...subscription, attachFilter: (program) => transport.attachFilter(program) };
}

function deliver(message: NetlinkMessage, listener: RuleEventListener): void {
  try {
    if (messageKind(message.type) === NFT_MSG.NEWGEN) {
      listener.committed(message.port, readGeneration(message));
      return;
    }
    const event = readRuleEvent(message);
    if (event) listener.event(event);
  } catch (error) {
    if (!(error instanceof NetlinkFormatError)) throw error;
    listener.overrun();
  }
}

/** Reads a notification; undefined for other kinds of objects and other families. */
function readRuleEvent(message: NetlinkMessage): RuleEvent | undefined {
  const what = kinds.get(messageKind(message.type) ?? -1);
  const family = nameOf(addressFamilies, message.firstByte);
  if (!what || !family) return undefined;
  const attributes = AttributeMap.of(message);
  const table = attributes.string(what.table);
  const chain = what.chain === undefined ? '' : attributes.string(what.chain);
  if (table === undefined || chain === undefined) throw new NetlinkFormatError(`${what.kind} without a name`);
  return { port: message.port, family, type: what.type, kind: what.kind, table, chain };
}

const table = { kind: 'table', table: NFTA_TABLE.NAME } as const;
const chain = { kind: 'chain', table: NFTA_CHAIN.TABLE, chain: NFTA_CHAIN.NAME } as const;
const rule = { kind: 'rule', table: NFTA_RULE.TABLE, chain: NFTA_RULE.CHAIN } as const;

type Kind = Pick<RuleEvent, 'type' | 'kind'> & { readonly table: number; readonly chain?: number };

const kinds: ReadonlyMap<number, Kind> = new Map<number, Kind>([
  [NFT_MSG.NEWTABLE, { ...table, type: 'added' }],
  [NFT_MSG.DELTABLE, { ...table, type: 'deleted' }],
  [NFT_MSG.NEWCHAIN, { ...chain, type: 'added' }],
  [NFT_MSG.DELCHAIN, { ...chain, type: 'deleted' }],
  [NFT_MSG.NEWRULE, { ...rule, type: 'added' }],
  [NFT_MSG.DELRULE, { ...rule, type: 'deleted' }],
]);
