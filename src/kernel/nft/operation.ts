import type {
  Chain,
  ChainRef,
  Counter,
  CounterRef,
  Element,
  NftSet,
  Rule,
  RuleRef,
  SetRef,
  Table,
  TableRef,
} from './objects.ts';

export type Verb = 'add' | 'create' | 'insert' | 'delete' | 'destroy' | 'flush';
export type ObjectKind = 'table' | 'chain' | 'rule' | 'set' | 'element' | 'counter';

/** What each verb takes, per kind of object. */
export interface Addable {
  table: Table;
  chain: Chain;
  rule: Rule;
  set: NftSet;
  counter: Counter;
}

export interface Deletable {
  table: TableRef;
  chain: ChainRef;
  rule: RuleRef;
  set: SetRef;
  counter: CounterRef;
}

/** Whole objects, because kernels before 6.3 must be told to add what they are to delete without complaint. */
export type Destroyable = Pick<Addable, 'table' | 'chain' | 'set' | 'counter'>;

/** `table`: all rules of all its chains. `chain`: its rules. `set`: its elements. */
export interface Flushable {
  table: TableRef;
  chain: ChainRef;
  set: SetRef;
}

/** One message of a batch: what an error of the kernel can point at. */
export interface Operation {
  readonly verb: Verb;
  readonly kind: ObjectKind;
  /** The object as it was given; for elements, their set. */
  readonly object: Table | Chain | Rule | RuleRef | SetRef | Counter;
  /** The elements that this message carries; large lists are spread over several messages. */
  readonly elements?: readonly Element[];
}

/** In nft's words: `add element ip kube-proxy endpoints`. */
export function describeOperation({ verb, kind, object }: Operation): string {
  return `${verb} ${kind} ${path(object)}`;
}

/** The table that an operation is about, or works in. */
export function tableOf({ object }: Operation): TableRef {
  if ('chain' in object) return object.chain.table;
  return 'table' in object ? object.table : object;
}

function path(object: Operation['object']): string {
  if ('chain' in object) return path(object.chain);
  if ('table' in object) return `${path(object.table)} ${object.name}`;
  return `${object.family} ${object.name}`;
}
