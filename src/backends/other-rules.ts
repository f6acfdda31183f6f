import { legacyTables } from '../kernel/iptables/table-reader.ts';
import type {
  Chain,
  ChainRef,
  Element,
  ListedRule,
  NftFamily,
  SetRef,
  TableRef,
} from '../kernel/nft/objects.ts';
import { type Bits, knownWord } from '../kernel/nft/walk/known-bits.ts';
import {
  type PossibleVerdict,
  type PossibleVerdicts,
  possibleVerdicts,
  type RulesetFacts,
} from '../kernel/nft/walk/possible-verdicts.ts';
import { commentOf } from '../kernel/nft/walk/xtables.ts';
import { openRuleset, type RulesetKernel } from '../kernel/open.ts';
import { systemFiles } from '../kernel/system-files.ts';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/thrown.ts';
import { type Family, formatIP, isLoopback, toIP } from '../model/ip.ts';
import { isWatchingTable } from '../model/watching-table.ts';
import type {
  KernelAnswer,
  Obstacle,
  ObstacleCause,
  OtherChain,
  OtherRules,
  Packet,
  Target,
} from './inspection.ts';
import { type Stage, type StageMark, stagesOf, type WayFacts } from './packet-stages.ts';

/** What identifies the rules of the proxy among those of others. */
export interface OwnRules {
  /** Tables that only this mode writes. */
  readonly tables: readonly TableRef[];
  /** Matches the names of its chains in tables that other programs use, too. */
  readonly chains: RegExp | undefined;
  /** This node's address in this family; empty when unknown. */
  readonly nodeIP: string;
}

/** Conntrack sees packets from this priority on. */
const conntrackPriority = -200;
/** Ways to more endpoints than this are not followed. */
const maxTargets = 64;
const maxCauses = 5;

/**
 * Finds the base chains of other programs in nf_tables, those of iptables-nft among them, that a packet passes, and what
 * they may do with it. Reads only these chains. Rejects when the kernel cannot be asked.
 */
export async function lookAtOtherRules(
  packet: Packet,
  answer: KernelAnswer,
  own: OwnRules,
  clock: Clock,
): Promise<OtherRules> {
  const kernel = await openRuleset(clock);
  try {
    return await new OtherRulesLook(packet, own, await Ruleset.read(packet.family, kernel)).at(answer);
  } catch (error) {
    if (/\bEPERM\b/.test(messageOf(error)))
      throw new Error('reading nf_tables needs CAP_NET_ADMIN', { cause: error });
    throw error;
  } finally {
    kernel.close();
  }
}

/** The chains of the kernel, and the facts of the node that rules may test. */
class Ruleset implements RulesetFacts {
  readonly chains: readonly Chain[];
  /** The packet may pass chains that cannot be looked at. */
  readonly hasDeviceChains: boolean;
  readonly #kernel: RulesetKernel;
  readonly #own: ReadonlySet<string>;
  readonly #indexes: ReadonlyMap<string, number>;
  readonly #family: Family;
  readonly #read = new Map<string, Promise<unknown>>();

  static async read(family: Family, kernel: RulesetKernel): Promise<Ruleset> {
    const { nft, route } = kernel;
    const families: NftFamily[] = [family === 'IPv4' ? 'ip' : 'ip6', 'inet'];
    const chains = (await Promise.all(families.map((each) => nft.listAllChains(each)))).flat();
    const deviceChains = await nft.listAllChains('netdev');
    const addresses = await route.listAddresses();
    const links = await route.listLinks();
    return new Ruleset(family, kernel, {
      chains,
      hasDeviceChains: deviceChains.length > 0,
      own: new Set(addresses.map(({ ip }) => ip)),
      indexes: new Map(links.map(({ name, index }) => [name, index])),
    });
  }

  private constructor(
    family: Family,
    kernel: RulesetKernel,
    facts: {
      chains: readonly Chain[];
      hasDeviceChains: boolean;
      own: ReadonlySet<string>;
      indexes: ReadonlyMap<string, number>;
    },
  ) {
    this.#family = family;
    this.#kernel = kernel;
    this.chains = facts.chains;
    this.hasDeviceChains = facts.hasDeviceChains;
    this.#own = facts.own;
    this.#indexes = facts.indexes;
  }

  rulesOf(chain: ChainRef): Promise<readonly ListedRule[]> {
    return this.#once(`rules ${chainName(chain)}`, () => this.#kernel.nft.listChainRules(chain));
  }

  async keyLengthOf(set: SetRef): Promise<number | undefined> {
    const sets = await this.#once(`sets ${tableName(set.table)}`, () => this.#kernel.nft.listSets(set.table));
    return sets.find(({ name }) => name === set.name)?.keyLength;
  }

  find(set: SetRef, key: Uint8Array): Promise<Element | undefined> {
    return this.#once(`element ${tableName(set.table)} ${set.name} ${key}`, async () => {
      const found = await this.#kernel.nft.getElement(set, key);
      // Kernels before 5.13 have no catch-all elements and refuse the question.
      return found ?? (await this.#kernel.nft.getCatchAll(set).catch(() => undefined));
    });
  }

  readonly isLocal = (bytes: Uint8Array): boolean => {
    const ip = { family: this.#family, bytes };
    return isLoopback(ip) || this.#own.has(formatIP(ip));
  };

  indexOf(name: string): number | undefined {
    return this.#indexes.get(name);
  }

  async leadsTo(bytes: Uint8Array, name: string): Promise<boolean> {
    return (await this.interfaceTowards(formatIP({ family: this.#family, bytes }))) === name;
  }

  interfaceTowards(address: string): Promise<string> {
    return this.#once(`route ${address}`, () => this.#kernel.route.interfaceTowards(address));
  }

  /** Reads everything once for a question. */
  #once<T>(what: string, read: () => Promise<T>): Promise<T> {
    const known = this.#read.get(what) as Promise<T> | undefined;
    const answer = known ?? read();
    if (!known) this.#read.set(what, answer);
    return answer;
  }
}

/** What a base chain does with packets to one target. */
interface Finding {
  readonly chain: Chain;
  readonly target: Target | undefined;
  readonly found: PossibleVerdicts;
}

class OtherRulesLook {
  readonly #packet: Packet;
  readonly #ruleset: Ruleset;
  readonly #facts: WayFacts;
  readonly #chains: readonly Chain[];
  /** The mode's own inspection has followed these chains: they let the packet pass. */
  readonly #isOwn: (chain: string) => boolean;

  constructor(packet: Packet, own: OwnRules, ruleset: Ruleset) {
    this.#packet = packet;
    this.#ruleset = ruleset;
    this.#isOwn = (chain) => own.chains?.test(chain) ?? false;
    const ownTables = new Set(own.tables.map(tableName));
    this.#chains = ruleset.chains
      .filter(({ table, base }) => base && !isWatchingTable(table.name) && !ownTables.has(tableName(table)))
      .sort((a, b) => (a.base?.priority ?? 0) - (b.base?.priority ?? 0));
    this.#facts = {
      nodeIP: own.nodeIP,
      isLocal: (address) => ruleset.isLocal(toIP(address).bytes),
      interfaceTowards: (address) => ruleset.interfaceTowards(address),
    };
  }

  async at({ fate, delivery }: KernelAnswer): Promise<OtherRules> {
    if (fate.action === 'drop' || fate.action === 'reject') {
      return { lookedAt: [], obstacles: [], notLookedAt: [] };
    }
    const targets = fate.action === 'forward' ? fate.targets.slice(0, maxTargets) : [undefined];
    const findings: Finding[] = [];
    for (const target of targets) {
      const stages = await stagesOf(this.#packet, target, delivery, this.#facts);
      findings.push(...(await this.#follow(stages, target)));
    }
    const omitted = fate.action === 'forward' ? fate.targets.length - targets.length : 0;
    return {
      lookedAt: [...new Set(findings.map(({ chain }) => chain))].map(otherChain),
      obstacles: obstaclesOf(findings, targets.length),
      notLookedAt: this.#notLookedAt(omitted),
    };
  }

  /** Runs the packet through the chains of every hook on its way, until one of them certainly stops it. */
  async #follow(stages: readonly Stage[], target: Target | undefined): Promise<Finding[]> {
    const findings: Finding[] = [];
    let mark = knownWord(0);
    for (const stage of stages) {
      let isChanged = false;
      for (const chain of this.#chains.filter((one) => isMet(one, stage))) {
        const { change } = stage;
        if (change && !isChanged && priorityOf(chain) > change.priority) {
          isChanged = true;
          mark = marked(mark, change.mark);
        }
        const state = {
          view: change && isChanged ? change.view : stage.view,
          isTracked: !isUntracked(chain, stage),
          mark,
        };
        const known = {
          isHarmless: this.#isOwn,
          isSkipped: (name: string) => chain.base?.type === 'nat' && this.#isOwn(name),
        };
        const found = await possibleVerdicts(chain, state, this.#ruleset, known);
        mark = state.mark;
        findings.push({ chain, target, found });
        if (isCertain(found)) return findings;
      }
      if (stage.change && !isChanged) mark = marked(mark, stage.change.mark);
    }
    return findings;
  }

  #notLookedAt(omittedEndpoints: number): string[] {
    const { family } = this.#packet;
    const legacy = [...legacyTables(systemFiles, family)].filter(Boolean).sort();
    return [
      ...(legacy.length > 0 ? [`other rules of legacy iptables (tables ${legacy.join(', ')})`] : []),
      ...(this.#ruleset.hasDeviceChains
        ? ['chains of family netdev, which see packets at an interface']
        : []),
      ...(omittedEndpoints > 0 ? [`the way to ${omittedEndpoints} further endpoints`] : []),
    ];
  }
}

function priorityOf({ base }: Chain): number {
  return base?.priority ?? 0;
}

function isMet({ base }: Chain, { hook, view, change, until, isTracked }: Stage): boolean {
  if (base?.hook !== hook) return false;
  if (until !== undefined && base.priority >= until) return false;
  if (base.type !== 'nat') return true;
  // The first chain that translates an address is the last of type nat that sees the packet at a hook.
  const isTranslated = change && change.view !== view && base.priority > change.priority;
  return !isTracked && !isTranslated;
}

function isUntracked(chain: Chain, { hook, isTracked }: Stage): boolean {
  return !isTracked && (hook === 'prerouting' || hook === 'output') && priorityOf(chain) < conntrackPriority;
}

function marked(mark: Bits, { set, unknown }: StageMark): Bits {
  const [on, off] = [knownWord(set).value, knownWord(unknown).value];
  const known = mark.known.map((byte, i) => (byte | (on[i] ?? 0)) & ~(off[i] ?? 0));
  return { value: mark.value.map((byte, i) => (byte | (on[i] ?? 0)) & (known[i] ?? 0)), known };
}

function isCertain({ verdicts }: PossibleVerdicts): boolean {
  return verdicts.every(({ action }) => action === 'drop' || action === 'reject');
}

/** One obstacle for each chain and each set of causes; `targets` is the number of ways that were followed. */
function obstaclesOf(findings: readonly Finding[], targets: number): Obstacle[] {
  const stopping = findings.filter(({ found }) => found.verdicts.some(({ action }) => action !== 'accept'));
  const groups = Map.groupBy(stopping, ({ chain, found }) =>
    [chainName(chain), isCertain(found), ...found.verdicts.map(verdictName)].join(' '),
  );
  const obstacles = [...groups.values()].map((group) => obstacleOf(group, targets));
  return obstacles.sort((a, b) => (a.certainty === b.certainty ? 0 : a.certainty === 'certain' ? -1 : 1));
}

function obstacleOf(group: readonly Finding[], targets: number): Obstacle {
  const [first] = group;
  if (!first) throw new RangeError('an obstacle without findings');
  const causes = first.found.verdicts.flatMap(causeOf);
  const endpoints = [...new Set(group.flatMap(({ target }) => target?.endpoint ?? []))];
  return {
    certainty: isCertain(first.found) ? 'certain' : 'possible',
    ...otherChain(first.chain),
    causes: causes.slice(0, maxCauses),
    causeCount: causes.length,
    unclearRules: first.found.unclear,
    endpoints: endpoints.length < targets ? endpoints : null,
  };
}

function causeOf({ action, chains, rule }: PossibleVerdict): ObstacleCause[] {
  if (action === 'accept') return [];
  return [
    {
      action,
      chain: chains.at(-1) ?? '',
      handle: rule ? Number(rule.handle) : null,
      comment: rule?.comment ?? commentOf(rule?.exprs ?? []) ?? null,
    },
  ];
}

function verdictName({ action, chains, rule }: PossibleVerdict): string {
  return `${action} ${chains.join(' ')} ${rule?.handle ?? 'policy'}`;
}

function otherChain({ table, name, base }: Chain): OtherChain {
  return {
    table: tableName(table),
    chain: name,
    hook: base?.hook ?? '',
    priority: base?.priority ?? 0,
    policy: base?.policy ?? 'accept',
  };
}

function tableName({ family, name }: TableRef): string {
  return `${family} ${name}`;
}

function chainName({ table, name }: ChainRef): string {
  return `${tableName(table)} ${name}`;
}
