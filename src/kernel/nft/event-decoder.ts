import { AttributeMap } from '../netlink/attribute-map.ts';
import type { NetlinkMessage } from '../netlink/reader.ts';
import type { Generation } from './client.ts';
import { readElementListRef, readElements } from './codec/element.ts';
import { readFlowtable } from './codec/flowtable.ts';
import { readChain, readCounterObject, readRule, readTable } from './codec/objects.ts';
import { readSet } from './codec/set.ts';
import { messageKind, NFT_MSG, NFTA_GEN } from './constants.ts';
import type { NftEvent } from './events.ts';

/** Reads a notification; undefined for kinds of objects that this program does not use. */
export function readEvent(message: NetlinkMessage): NftEvent | undefined {
  const portId = message.port;
  const kind = messageKind(message.type);
  const type = kind !== undefined && newKinds.has(kind) ? 'new' : 'delete';
  switch (kind) {
    case NFT_MSG.NEWTABLE:
    case NFT_MSG.DELTABLE:
      return { portId, type, kind: 'table', object: readTable(message) };
    case NFT_MSG.NEWCHAIN:
    case NFT_MSG.DELCHAIN:
      return { portId, type, kind: 'chain', object: readChain(message) };
    case NFT_MSG.NEWRULE:
    case NFT_MSG.DELRULE:
      return { portId, type, kind: 'rule', object: readRule(message) };
    case NFT_MSG.NEWSET:
    case NFT_MSG.DELSET:
      return { portId, type, kind: 'set', object: readSet(message) };
    case NFT_MSG.NEWSETELEM:
    case NFT_MSG.DELSETELEM:
      return {
        portId,
        type,
        kind: 'element',
        set: readElementListRef(message),
        elements: readElements(message),
      };
    case NFT_MSG.NEWOBJ:
    case NFT_MSG.DELOBJ: {
      const object = readCounterObject(message);
      return object && { portId, type, kind: 'counter', object };
    }
    case NFT_MSG.NEWFLOWTABLE:
    case NFT_MSG.DELFLOWTABLE:
      return { portId, type, kind: 'flowtable', object: readFlowtable(message) };
    case NFT_MSG.NEWGEN:
      return { portId, type: 'generation', ...readGeneration(message) };
    default:
      return undefined;
  }
}

const newKinds: ReadonlySet<number> = new Set([
  NFT_MSG.NEWTABLE,
  NFT_MSG.NEWCHAIN,
  NFT_MSG.NEWRULE,
  NFT_MSG.NEWSET,
  NFT_MSG.NEWSETELEM,
  NFT_MSG.NEWOBJ,
  NFT_MSG.NEWFLOWTABLE,
]);

/** Reads the ruleset generation from a notification or an answer. */
export function readGeneration(message: NetlinkMessage): Generation {
  const a = AttributeMap.of(message);
  return {
    id: a.u32Be(NFTA_GEN.ID) ?? 0,
    pid: a.u32Be(NFTA_GEN.PROC_PID) ?? 0,
    processName: a.string(NFTA_GEN.PROC_NAME) ?? '',
  };
}
