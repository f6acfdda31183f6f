import type {
  Chain,
  ChainRef,
  Counter,
  Element,
  Flowtable,
  FlowtableRef,
  NftSet,
  Rule,
  RuleRef,
  SetRef,
  Table,
  TableRef,
} from './objects.ts';

/** What each verb takes, per kind of object. */
export interface Addable {
  table: Table;
  chain: Chain;
  rule: Rule;
  set: NftSet;
  counter: Counter;
  flowtable: Flowtable;
}

export interface Deletable {
  table: TableRef;
  chain: ChainRef;
  set: SetRef;
  rule: RuleRef;
  flowtable: FlowtableRef | Flowtable;
}

/** Flushing a chain deletes its rules, flushing a set its elements. */
export interface Flushable {
  chain: ChainRef;
  set: SetRef;
}

/** One message of a batch, to which an error of the kernel can refer. */
export interface Operation {
  readonly verb: 'add' | 'delete' | 'destroy' | 'flush';
  readonly kind: 'table' | 'chain' | 'rule' | 'set' | 'element' | 'counter' | 'flowtable';
  /** The object that the caller passed; for elements, their set. */
  readonly object: Table | Chain | Rule | RuleRef | SetRef | Counter | FlowtableRef;
  /** The elements in this message; a long list takes several messages. */
  readonly elements?: readonly Element[];
}

/** In nft's words: `add element ip kube-proxy endpoints`. */
export function describeOperation({ verb, kind, object }: Operation): string {
  return `${verb} ${kind} ${path(object)}`;
}

/** The table that an operation changes. */
export function tableOf({ object }: Operation): TableRef {
  if ('chain' in object) return object.chain.table;
  return 'table' in object ? object.table : object;
}

function path(object: Operation['object']): string {
  if ('chain' in object) return path(object.chain);
  if ('table' in object) return `${path(object.table)} ${object.name}`;
  return `${object.family} ${object.name}`;
}
