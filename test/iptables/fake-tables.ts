import {
  type Counters,
  RestoreError,
  type TableName,
  type Tables,
} from '../../src/backends/iptables/tables.ts';

type Table = Map<string, string[]>;

/** The chains that exist before anything is restored. */
const builtIn: Readonly<Record<TableName, readonly string[]>> = {
  filter: ['INPUT', 'FORWARD', 'OUTPUT', 'KUBE-FIREWALL'],
  nat: ['PREROUTING', 'INPUT', 'OUTPUT', 'POSTROUTING'],
};

/** Targets that are no chains. */
const targets = new Set(['DNAT', 'MARK', 'MASQUERADE', 'RETURN', 'DROP', 'REJECT', 'ACCEPT']);

/**
 * The filter and nat tables in memory, which behave as with iptables-restore --noflush: chain lines create or empty a
 * chain, rules may only jump to chains that exist, a chain that is a jump target cannot be removed, and each table is
 * committed as a whole or not at all.
 */
export class FakeTables implements Tables {
  readonly chainsPerRestore: number;
  readonly tables: Record<TableName, Table> = { filter: emptyTable('filter'), nat: emptyTable('nat') };
  counters: Counters = { invalidDropped: true, localhostAccepted: true };
  /** Every call in order; a restore as its whole input. */
  readonly calls: string[] = [];
  /** Lines containing one of these are refused: at that line, at the one after it, or only at the end. */
  readonly refuse: { text: string; at: 'line' | 'next line' | 'COMMIT' }[] = [];
  /** Thrown by the next call of that name. */
  readonly failNext = new Map<string, Error>();

  constructor(chainsPerRestore = Number.POSITIVE_INFINITY) {
    this.chainsPerRestore = chainsPerRestore;
  }

  async ensureJumps(): Promise<ReadonlySet<string>> {
    this.#called('ensureJumps');
    return new Set(this.tables.nat.keys());
  }

  async ensureCounters(): Promise<Counters> {
    this.#called('ensureCounters');
    return this.counters;
  }

  async restore(input: Iterable<string>): Promise<void> {
    const text = [...input].join('');
    this.calls.push(text);
    this.#failIfTold('restore');
    let line = 0;
    let open: { name: TableName; table: Table; isBad: boolean } | undefined;
    for (const words of text.split('\n').slice(0, -1)) {
      line++;
      if (words === '*filter' || words === '*nat') {
        const name = words.slice(1) === 'nat' ? 'nat' : 'filter';
        open = { name, table: copyOf(this.tables[name]), isBad: false };
      } else if (!open) throw new RestoreError(`line ${line} outside a table: ${words}`, line);
      else if (words === 'COMMIT') {
        if (open.isBad) throw new RestoreError(`line ${line} failed`, line);
        this.tables[open.name] = open.table;
        open = undefined;
      } else {
        const refusal = this.refuse.find(({ text }) => words.includes(text));
        const complaint = refusal?.at === 'next line' ? line + 1 : line;
        if (refusal && refusal.at !== 'COMMIT') throw new RestoreError(`line ${complaint} failed`, complaint);
        open.isBad ||= refusal !== undefined;
        execute(open.table, words, line);
      }
    }
    if (open) throw new RestoreError('no COMMIT');
  }

  /** Restores so far. */
  get restores(): string[] {
    return this.calls.filter((call) => call.startsWith('*'));
  }

  /** Chains and rules of both tables, built-in chains apart. */
  get contents(): Record<string, readonly string[]> {
    const entries = (['filter', 'nat'] as const).flatMap((name) =>
      [...this.tables[name]]
        .filter(([chain]) => chain.startsWith('KUBE-'))
        .map(([chain, rules]): [string, readonly string[]] => [`${name} ${chain}`, rules]),
    );
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #called(name: string): void {
    this.calls.push(name);
    this.#failIfTold(name);
  }

  #failIfTold(name: string): void {
    const error = this.failNext.get(name);
    this.failNext.delete(name);
    if (error) throw error;
  }
}

function emptyTable(name: TableName): Table {
  return new Map(builtIn[name].map((chain) => [chain, []]));
}

function copyOf(table: Table): Table {
  return new Map([...table].map(([chain, rules]) => [chain, [...rules]]));
}

function execute(table: Table, line: string, number: number): void {
  const fail = (why: string) => new RestoreError(`line ${number} failed: ${why}: ${line}`, number);
  const declared = /^:(\S+) - \[0:0\]$/.exec(line)?.[1];
  if (declared !== undefined) {
    table.set(declared, []);
    return;
  }
  const [verb, chain = ''] = line.split(' ');
  const rules = table.get(chain);
  if (!rules) throw fail('no such chain');
  if (verb === '-A') {
    const target = targetOf(line);
    if (target !== undefined && !targets.has(target) && !table.has(target)) throw fail('no such target');
    rules.push(line);
  } else if (verb === '-X') {
    const isUsed = [...table.values()].some((others) => others.some((rule) => targetOf(rule) === chain));
    if (isUsed || rules.length > 0) throw fail('chain in use');
    table.delete(chain);
  } else throw fail('unknown command');
}

function targetOf(rule: string): string | undefined {
  return / -j (\S+)/.exec(rule)?.[1];
}
