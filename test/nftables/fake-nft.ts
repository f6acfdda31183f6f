import type { NftBatch } from '../../src/kernel/nft/batch.ts';
import type {
  CommitResult,
  Generation,
  ListElementsOptions,
  NftClient,
  Subscription,
} from '../../src/kernel/nft/client.ts';
import { NftError, type NftFailure } from '../../src/kernel/nft/errors.ts';
import type { NftEvent, NftEventListener } from '../../src/kernel/nft/events.ts';
import { concatLength } from '../../src/kernel/nft/fields.ts';
import type {
  Chain,
  Counter,
  Element,
  Flowtable,
  NftSet,
  Rule,
  RuleTarget,
  SetInfo,
  SetRef,
  Table,
  TableRef,
} from '../../src/kernel/nft/objects.ts';
import type { Operation } from '../../src/kernel/nft/operation.ts';

/** Offset of the expected generation in an encoded batch. */
const generationOffset = 24;

interface State {
  table: Table | undefined;
  readonly chains: Map<string, Chain>;
  readonly rules: Map<string, readonly Rule[]>;
  readonly flowtables: Map<string, Flowtable>;
  readonly sets: Map<string, { readonly definition: NftSet; readonly elements: Map<string, Element> }>;
}

/** Returns why an element is refused; undefined when it is accepted. */
export type Judge = (set: string, element: Element) => string | undefined;

/**
 * One table of nf_tables in memory, with transactions. A transaction fails, and changes nothing, when it uses a missing
 * chain or set, deletes a missing object, or adds an existing object with another value.
 */
export class FakeNft implements NftClient {
  readonly portId = 1;
  /** Every batch that was committed or checked. */
  readonly batches: { readonly batch: NftBatch; readonly applied: boolean }[] = [];
  /** Whether failures name the element, as kernels from 5.19 on do. */
  namesElements = true;
  judge: Judge = () => undefined;
  /** Whether an operation is refused. */
  refuses: (operation: Operation) => boolean = () => false;
  /** Names of devices that a flowtable can have. */
  readonly devices = new Set<string>();
  /** Runs before the next commit, as a change by another program at that moment. */
  interference: (() => void) | undefined;
  listener: NftEventListener | undefined;
  #state: State = emptyState();
  #generation = 1;

  async commit(batch: NftBatch): Promise<CommitResult> {
    this.interference?.();
    this.interference = undefined;
    const expected = new DataView(batch.encode(true).buffer).getUint32(generationOffset);
    if (expected !== 0 && expected !== this.#generation) {
      throw new NftError('commit', [{ errno: 'ERESTART', text: '' }]);
    }
    this.#state = this.#run(batch, true);
    this.#generation++;
    return { generation: this.#generation, bytes: batch.length };
  }

  async check(batch: NftBatch): Promise<void> {
    this.#run(batch, false);
  }

  /** Removes everything, as `nft flush ruleset` does. */
  wipe(): void {
    this.#state = emptyState();
    this.#generation++;
  }

  elementsOf(set: string): Map<string, Element> {
    return this.#state.sets.get(set)?.elements ?? new Map();
  }

  get setNames(): string[] {
    return [...this.#state.sets.keys()];
  }

  get chainNames(): string[] {
    return [...this.#state.chains.keys()];
  }

  emit(...events: readonly NftEvent[]): void {
    for (const event of events) this.listener?.event(event);
  }

  async generation(): Promise<Generation> {
    return { id: this.#generation, pid: 1, processName: 'fake' };
  }

  async getTable(): Promise<Table | undefined> {
    return this.#state.table;
  }

  async listChains(): Promise<Chain[]> {
    return [...this.#state.chains.values()];
  }

  /** Only of one chain: tests of whole tables use a kernel. */
  async listRules(_table: TableRef, chain?: string): Promise<Rule[]> {
    return [...(this.#state.rules.get(chain ?? '') ?? [])];
  }

  async listRuleTargets(): Promise<RuleTarget[]> {
    return [];
  }

  async listFlowtables(): Promise<Flowtable[]> {
    return [...this.#state.flowtables.values()];
  }

  async listSets(): Promise<SetInfo[]> {
    return [...this.#state.sets.values()].map(({ definition }) => infoOf(definition));
  }

  async listElements(
    { name }: SetRef,
    onElements: (elements: readonly Element[], restarted: boolean) => void,
    _options?: ListElementsOptions,
  ): Promise<void> {
    onElements([...this.elementsOf(name).values()], false);
  }

  async getElement({ name }: SetRef, key: Uint8Array): Promise<Element | undefined> {
    return this.elementsOf(name).get(key.join());
  }

  async listCounters(): Promise<Counter[]> {
    return [];
  }

  subscribe(listener: NftEventListener): Subscription {
    this.listener = listener;
    return {
      close: () => {
        this.listener = undefined;
      },
    };
  }

  close(): void {}

  #run(batch: NftBatch, applied: boolean): State {
    this.batches.push({ batch, applied });
    const state = copyState(this.#state);
    const failures = batch.operations.flatMap((operation) => this.#apply(operation, state));
    if (failures.length > 0) throw new NftError('commit', failures);
    return state;
  }

  #apply(operation: Operation, state: State): NftFailure[] {
    const fail = (errno: string, text = ''): NftFailure[] => [{ errno, text, operation }];
    const { verb, kind, object } = operation;
    if (this.refuses(operation)) return fail('EOPNOTSUPP');
    if (kind === 'element') return this.#applyElements(operation, state);
    const name = 'name' in object ? object.name : '';
    if (kind === 'table') {
      if (verb === 'delete') Object.assign(state, emptyState());
      else state.table = object as Table;
    } else if (kind === 'chain') {
      if (verb === 'delete' && !state.chains.delete(name)) return fail('ENOENT');
      if (verb === 'add' && !state.chains.has(name)) state.chains.set(name, object as Chain);
      if (verb === 'flush' && !state.chains.has(name)) return fail('ENOENT');
      if (verb === 'flush') state.rules.delete(name);
    } else if (kind === 'rule') {
      const rule = object as Rule;
      state.rules.set(rule.chain.name, [...(state.rules.get(rule.chain.name) ?? []), rule]);
    } else if (kind === 'flowtable') {
      return this.#applyFlowtable(verb, object as Flowtable, state.flowtables) ? [] : fail('ENOENT');
    } else if (kind === 'set') {
      if (verb === 'flush') state.sets.get(name)?.elements.clear();
      else if (verb === 'delete') return state.sets.delete(name) ? [] : fail('ENOENT');
      else if (!state.sets.has(name))
        state.sets.set(name, { definition: object as NftSet, elements: new Map() });
    }
    return [];
  }

  /** Returns false for a flowtable or device that does not exist. */
  #applyFlowtable(verb: Operation['verb'], object: Flowtable, flowtables: State['flowtables']): boolean {
    const { name, devices } = object;
    const held = flowtables.get(name);
    if (verb === 'delete' && devices === undefined) return flowtables.delete(name);
    if (!devices.every((device) => this.devices.has(device)) || (verb === 'delete' && !held)) return false;
    const others = held?.devices.filter((device) => !devices.includes(device)) ?? [];
    flowtables.set(name, { ...object, devices: verb === 'add' ? [...others, ...devices] : others });
    return true;
  }

  #applyElements(operation: Operation, state: State): NftFailure[] {
    const name = 'name' in operation.object ? operation.object.name : '';
    const elements = state.sets.get(name)?.elements;
    if (!elements) return [{ errno: 'ENOENT', text: '', operation }];
    return (operation.elements ?? []).flatMap((element) => {
      const failure = this.#applyElement(operation.verb, name, element, elements, state);
      return failure ? [{ ...failure, operation, ...(this.namesElements ? { element } : {}) }] : [];
    });
  }

  #applyElement(
    verb: Operation['verb'],
    set: string,
    element: Element,
    elements: Map<string, Element>,
    state: State,
  ): { errno: string; text: string } | undefined {
    const key = `${element.key.join()}${element.intervalEnd ? 'e' : ''}`;
    if (verb === 'delete') return elements.delete(key) ? undefined : { errno: 'ENOENT', text: '' };
    const objection = this.judge(set, element);
    if (objection !== undefined) return { errno: 'EINVAL', text: objection };
    const chain = element.verdict && 'chain' in element.verdict ? element.verdict.chain : undefined;
    if (chain !== undefined && !state.chains.has(chain)) return { errno: 'ENOENT', text: chain };
    if (elements.has(key)) return { errno: 'EEXIST', text: '' };
    elements.set(key, element);
    return undefined;
  }
}

function emptyState(): State {
  return { table: undefined, chains: new Map(), rules: new Map(), flowtables: new Map(), sets: new Map() };
}

function copyState(state: State): State {
  return {
    ...state,
    chains: new Map(state.chains),
    rules: new Map(state.rules),
    flowtables: new Map(state.flowtables),
    sets: new Map([...state.sets].map(([name, set]) => [name, { ...set, elements: new Map(set.elements) }])),
  };
}

function infoOf(set: NftSet): SetInfo {
  const { table, name, key, data, flags = [], comment } = set;
  return {
    table,
    name,
    flags,
    keyType: 0,
    keyLength: concatLength(key),
    ...(data === undefined
      ? {}
      : { dataType: 0, ...(data === 'verdict' ? {} : { dataLength: concatLength(data) }) }),
    ...(comment === undefined ? {} : { comment }),
  };
}
