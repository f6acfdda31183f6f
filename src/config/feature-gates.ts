import { ConfigError, joinMessages } from './errors.ts';
import { type GateStage, gateDependents, gateGroups } from './feature-gates-data.ts';

export interface Gate {
  readonly name: string;
  readonly stage: GateStage;
  readonly default: boolean;
  /** A locked gate can only be set to its default. */
  readonly locked: boolean;
}

/** Takes a message about gates that were set, for the log at a verbosity. */
export type GateReport = (
  level: number,
  message: string,
  attributes: Readonly<Record<string, unknown>>,
) => void;

const gates: ReadonlyMap<string, Gate> = new Map(
  gateGroups
    .flatMap(({ names, ...facts }) => wordsOf(names).map((name) => ({ name, ...facts })))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((gate) => [gate.name, gate]),
);

/** Every gate that can be named in a configuration, sorted by name. */
export function knownGates(): Gate[] {
  return [...gates.values()];
}

/** The state of all gates in one process. */
export class FeatureGates {
  readonly #set: ReadonlyMap<string, boolean>;

  private constructor(set: ReadonlyMap<string, boolean>) {
    this.#set = set;
  }

  /** Throws for an unknown name, which is a programming error. */
  enabled(name: string): boolean {
    const gate = gates.get(name);
    if (!gate) throw new Error(`feature gate ${name} does not exist`);
    return this.#set.get(name) ?? gate.default;
  }

  /** Whether the configuration turns a gate on, by its name or by its stage. A default does not count. */
  isTurnedOn(name: string): boolean {
    return this.#set.get(name) ?? false;
  }

  /**
   * Sets gates from the configuration. Throws a ConfigError for unknown names, locked gates and dependencies that are
   * off. GA and deprecated gates are reported when set, even if other gates are then refused.
   */
  static of(map: Readonly<Record<string, boolean>>, report: GateReport = () => {}): FeatureGates {
    const entries = Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1));
    refuse(setOneByOne(entries, report));
    const set = withStages(new Map(entries));
    const result = new FeatureGates(set);
    refuse(unmetDependencies(result));
    report(1, 'Updated', { featureGates: Object.fromEntries([...set].sort(([a], [b]) => (a < b ? -1 : 1))) });
    return result;
  }
}

/** Returns the errors of the entries, up to the first unknown name, as upstream does. */
function setOneByOne(entries: readonly [string, boolean][], report: GateReport): string[] {
  const errors: string[] = [];
  for (const [name, value] of entries) {
    const gate = gates.get(name);
    if (!gate) return [...errors, `unrecognized feature gate: ${name}`];
    if (gate.locked && gate.default !== value) {
      errors.push(`cannot set feature gate ${name} to ${value}, feature is locked to ${gate.default}`);
    } else if (gate.stage === 'GA' || gate.stage === 'DEPRECATED') {
      const word = gate.stage === 'GA' ? 'GA' : 'deprecated';
      const message = `Warning: setting ${word} feature gate. It will be removed in a future release.`;
      report(0, message, { featureGate: name, value });
    }
  }
  return errors;
}

function refuse(errors: readonly string[]): void {
  if (errors.length > 0) throw new ConfigError(joinMessages(errors));
}

/** AllAlpha and AllBeta set the gates of their stage that are not set by name. */
function withStages(explicit: ReadonlyMap<string, boolean>): Map<string, boolean> {
  const set = new Map(explicit);
  for (const [name, stage] of [
    ['AllAlpha', 'ALPHA'],
    ['AllBeta', 'BETA'],
  ] as const) {
    const value = explicit.get(name);
    if (value === undefined) continue;
    for (const gate of gates.values()) {
      if (gate.stage === stage && !explicit.has(gate.name)) set.set(gate.name, value);
    }
  }
  return set;
}

function unmetDependencies(set: FeatureGates): string[] {
  const unmet = new Map<string, string[]>();
  for (const [needed, dependents] of Object.entries(gateDependents)) {
    if (set.enabled(needed)) continue;
    for (const gate of wordsOf(dependents).filter((name) => set.enabled(name))) {
      unmet.set(gate, [...(unmet.get(gate) ?? []), needed]);
    }
  }
  return [...unmet].map(
    ([gate, needs]) => `${gate} is enabled, but depends on features that are disabled: [${needs.join(' ')}]`,
  );
}

function wordsOf(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}
