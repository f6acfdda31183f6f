import { ConfigError, joinMessages } from './errors.ts';
import { type GateStage, gateDependencies, gateGroups } from './feature-gates-data.ts';

export interface Gate {
  readonly name: string;
  readonly stage: GateStage;
  readonly default: boolean;
  /** A locked gate can only be set to its default. */
  readonly locked: boolean;
}

const gates: ReadonlyMap<string, Gate> = new Map(
  gateGroups
    .flatMap(({ names, ...facts }) => names.split(/\s+/).map((name) => ({ name, ...facts })))
    .filter(({ name }) => name !== '')
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((gate) => [gate.name, gate]),
);

/** Every gate that can be named in a configuration, sorted by name. */
export function knownGates(): Gate[] {
  return [...gates.values()];
}

/** The gates as one process has them set. */
export class FeatureGates {
  readonly #set: ReadonlyMap<string, boolean>;

  private constructor(set: ReadonlyMap<string, boolean>) {
    this.#set = set;
  }

  /** Throws for a name that is no gate: asking for one is a mistake in the program. */
  enabled(name: string): boolean {
    const gate = gates.get(name);
    if (!gate) throw new Error(`feature gate ${name} does not exist`);
    return this.#set.get(name) ?? gate.default;
  }

  /**
   * Gates from the configuration's map. Throws a ConfigError for unknown names, locked gates and dependencies that
   * are off. `warnings` tells of gates that are on their way out.
   */
  static from(map: Readonly<Record<string, boolean>>): { gates: FeatureGates; warnings: string[] } {
    const entries = Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1));
    const errors = entries.flatMap(([name, value]) => refusal(name, value));
    if (errors.length > 0) throw new ConfigError(joinMessages(errors));
    const set = new FeatureGates(withStages(new Map(entries)));
    const unmet = unmetDependencies(set);
    if (unmet.length > 0) throw new ConfigError(joinMessages(unmet));
    return { gates: set, warnings: entries.flatMap(([name, value]) => warning(name, value)) };
  }
}

function refusal(name: string, value: boolean): string[] {
  const gate = gates.get(name);
  if (!gate) return [`unrecognized feature gate: ${name}`];
  if (!gate.locked || gate.default === value) return [];
  return [`cannot set feature gate ${name} to ${value}, feature is locked to ${gate.default}`];
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
  return gateDependencies
    .filter(([gate, needs]) => set.enabled(gate) && !set.enabled(needs))
    .map(([gate, needs]) => `${gate} is enabled, but depends on features that are disabled: [${needs}]`);
}

function warning(name: string, value: boolean): string[] {
  const stage = gates.get(name)?.stage;
  if (stage !== 'GA' && stage !== 'DEPRECATED') return [];
  const word = stage === 'GA' ? 'GA' : 'deprecated';
  return [`Setting ${word} feature gate ${name}=${value}. It will be removed in a future release.`];
}
