import type { MessageWriter } from '../netlink/writer.ts';
import { writeFlowtable, writeFlowtableDeletion } from './codec/flowtable.ts';
import * as objects from './codec/objects.ts';
import { writeSet, writeSetRef } from './codec/set.ts';
import { NFT_MSG, NFTA_SET_ELEM_LIST, type NftMessageKind } from './constants.ts';
import type { Addable, Deletable, Flushable } from './operation.ts';

/** Which message each verb sends for each kind of object, and what the message contains. */

type Messages<T> = { readonly [K in keyof T]: NftMessageKind };
type Writers<T> = { readonly [K in keyof T]: (writer: MessageWriter, object: T[K]) => void };

export const newMessages: Messages<Addable> = {
  table: NFT_MSG.NEWTABLE,
  chain: NFT_MSG.NEWCHAIN,
  rule: NFT_MSG.NEWRULE,
  set: NFT_MSG.NEWSET,
  counter: NFT_MSG.NEWOBJ,
  flowtable: NFT_MSG.NEWFLOWTABLE,
};

/** `nextSetId` numbers the sets of a batch that the caller did not number. */
export function newWriters(nextSetId: () => number): Writers<Addable> {
  return {
    table: objects.writeTable,
    chain: objects.writeChain,
    rule: objects.writeRule,
    set: (writer, set) => writeSet(writer, set, set.id ?? nextSetId()),
    counter: objects.writeCounterObject,
    flowtable: writeFlowtable,
  };
}

export const deleteMessages: Messages<Deletable> = {
  table: NFT_MSG.DELTABLE,
  chain: NFT_MSG.DELCHAIN,
  set: NFT_MSG.DELSET,
  rule: NFT_MSG.DELRULE,
  flowtable: NFT_MSG.DELFLOWTABLE,
};
export const deleteWriters: Writers<Deletable> = {
  table: objects.writeTableRef,
  chain: objects.writeChainRef,
  set: writeSetRef,
  rule: objects.writeRuleRef,
  flowtable: writeFlowtableDeletion,
};

/** A deletion that names no rule or element deletes them all. */
export const flushMessages: Messages<Flushable> = { chain: NFT_MSG.DELRULE, set: NFT_MSG.DELSETELEM };
export const flushWriters: Writers<Flushable> = {
  chain: objects.writeRuleChain,
  set: (writer, set) => {
    writer.string(NFTA_SET_ELEM_LIST.TABLE, objects.checkName('table', set.table.name));
    writer.string(NFTA_SET_ELEM_LIST.SET, objects.checkName('set', set.name));
  },
};
