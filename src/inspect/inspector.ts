import type { KernelAnswer, OtherRules, Packet } from '../backends/inspection.ts';
import type { NodeFacts } from '../backends/node-facts.ts';
import { foretoldBalance, type PacketRules } from '../backends/packet-rules.ts';
import type { Clock } from '../lib/clock.ts';
import { product } from '../lib/product.ts';
import { messageOf } from '../lib/thrown.ts';
import type { ConfigurationStatus } from '../model/config-file-status.ts';
import type { Family } from '../model/ip.ts';
import { ANOTHER_COPY_RUNS, isServing, type Problem, stateOf } from '../model/problem.ts';
import type { ProxyMode } from '../model/proxy-mode.ts';
import type { SourceStatus } from '../model/source-status.ts';
import type { PlannedPort } from '../plan/plan.ts';
import { type AffinityQuestion, LongestBindings, longest } from './affinity.ts';
import {
  API_VERSION,
  type DifferenceReport,
  type DiffReport,
  type EndpointReport,
  type ExplanationReport,
  type FamilyComparison,
  type FamilyLook,
  type JournalReport,
  type ServiceReport,
  type SetAsideReport,
  type StatusReport,
} from './api.ts';
import { fateDifferences } from './compare-fates.ts';
import { explainPacket } from './explain-packet.ts';
import type { FamilyView } from './family-view.ts';
import type { Journal } from './journal.ts';
import { isServiceNamed, type JournalQuestion, journalReport, selectFromJournal } from './journal-report.ts';
import type { KernelView } from './kernel-view.ts';
import { packetOf, type Question, QuestionError } from './question.ts';
import { isAddress, type Selection, type Selector, selectionOf } from './selection.ts';
import { directReports, endpointReports, fatePlacements, serviceReport } from './service-report.ts';
import { compareSettled } from './settled.ts';
import {
  configurationReport,
  familyStatus,
  problemReport,
  sourcesReport,
  timeText,
} from './status-report.ts';
import {
  type FlowFilter,
  type FlowQuestion,
  flowFilter,
  type TrafficQuestion,
  type TrafficSource,
} from './traffic.ts';
import type { AffinityReport, FlowEvent, FlowItem, FlowList, TrafficReport } from './traffic-api.ts';

/** The proxy has no plans yet. */
export class NotReadyError extends Error {}

/** One family, and the means to inspect it. */
export interface InspectedFamily {
  readonly view: FamilyView;
  readonly nodeIP: string;
  readonly facts: () => NodeFacts | Promise<NodeFacts>;
  /** Of the mode that runs. */
  readonly rules: PacketRules;
  /** Or the reason why the kernel cannot be asked. */
  readonly kernel: KernelView | string;
  /** Looks at what rules of other programs do with a packet; absent when the kernel cannot be asked. */
  readonly otherRules?: (packet: Packet, answer: KernelAnswer) => Promise<OtherRules>;
  /** The interface that leads to an address; '' when none is known. */
  readonly interfaceTowards: (address: string) => Promise<string>;
}

export interface InspectorOptions {
  readonly version: string;
  readonly mode: ProxyMode;
  readonly nodeName: string;
  /** Milliseconds since the Unix epoch. */
  readonly startTime: number;
  readonly families: readonly InspectedFamily[];
  /** Everything that is known to be wrong now. */
  readonly problems: () => readonly Problem[];
  readonly sources: () => SourceStatus;
  /** Undefined without a configuration file. */
  readonly configFile: () => ConfigurationStatus | undefined;
  readonly setAside: () => readonly SetAsideReport[];
  readonly journal: Journal;
  /** Opens what tells about traffic; absent where nothing does. */
  readonly traffic?: () => Promise<TrafficSource>;
  readonly clock: Clock;
}

type HeadOf<Report extends { readonly items: unknown }> = Omit<Report, 'items'>;

/** A report whose items are sent in pieces, because there may be many. */
export interface LongReport<Report extends { readonly items: readonly unknown[] }> {
  readonly head: HeadOf<Report>;
  readonly items: Iterable<Report['items'][number]>;
}

/** The flows of a node, which may be many: `send` passes them on piece by piece. */
export interface FlowStream {
  readonly head: HeadOf<FlowList>;
  send(write: (flows: readonly FlowItem[]) => Promise<void>): Promise<void>;
}

/** Answers questions about a running proxy: its decisions, and whether the kernel agrees. Changes nothing. */
export class Inspector {
  readonly #options: InspectorOptions;

  constructor(options: InspectorOptions) {
    this.#options = options;
  }

  status(): StatusReport {
    const { version, mode, nodeName, startTime, families, sources, configFile, setAside, clock } =
      this.#options;
    const problems = this.#options.problems();
    const state = stateOf(problems);
    return {
      apiVersion: API_VERSION,
      kind: 'Status',
      version,
      product: { version: product.version, commit: product.commit, treeState: product.treeState },
      mode,
      nodeName,
      time: timeText(clock.now()),
      startTime: timeText(startTime),
      healthy: state !== 'unhealthy',
      state,
      problems: problems.map(problemReport),
      families: families.map(({ view, nodeIP }) =>
        familyStatus(view, nodeIP, isServing(view.family, problems)),
      ),
      sources: sourcesReport(sources()),
      configuration: configurationReport(configFile()),
      setAside: setAside(),
    };
  }

  services(selector: Selector = {}): Promise<Iterable<ServiceReport>> {
    const parts = new Map(
      this.#options.families.map(({ view, rules }) => [
        view.family,
        { direct: directReports(rules.direct?.()), hashScheduler: rules.hashScheduler },
      ]),
    );
    return this.#selected(selector, function* (plan) {
      yield serviceReport(plan, parts.get(plan.port.family));
    });
  }

  endpoints(selector: Selector = {}): Promise<Iterable<EndpointReport>> {
    return this.#selected(selector, (plan, selection, { view, rules }) =>
      endpointReports(
        plan,
        plan.endpoints.filter((endpoint) => selection.endpoint(plan, endpoint)),
        view.placements(plan.port),
        foretoldBalance(plan, rules),
      ),
    );
  }

  /** Throws a QuestionError when the question makes no sense on this node, and a NotReadyError before the first plans. */
  async explain(question: Question): Promise<ExplanationReport> {
    const family = this.#options.families.find(({ view }) => view.family === question.family);
    if (!family) throw new QuestionError(`${question.family} is not served on this node`);
    const missing = this.#whyNoPlans(family);
    if (missing !== undefined) throw new NotReadyError(missing);
    const facts = await family.facts();
    const packet = await packetOf(question, facts, family.interfaceTowards);
    const { result } = await compareSettled(
      family.view,
      this.#options.clock,
      () => this.#bothSides(packet, family),
      ({ differences }) => differences.length > 0,
    );
    return { ...result, ...(await this.#others(packet, result.kernel, family)) };
  }

  /** The differences between the kernel and the plans. */
  async compare(): Promise<LongReport<DiffReport>> {
    const { mode, families } = this.#options;
    const looks = await Promise.all(families.map((family) => this.#compareFamily(family)));
    return {
      head: { apiVersion: API_VERSION, kind: 'Diff', mode, families: looks.map(({ look }) => look) },
      items: looks.flatMap(({ items }) => items),
    };
  }

  /** Figures of traffic. Service ports without traffic are reported only when the question names them. */
  async traffic({ by, ...selector }: TrafficQuestion): Promise<LongReport<TrafficReport>> {
    const { mode, clock } = this.#options;
    const isWanted = await this.#isPlanSelected(selector);
    const withIdle = (selector.name ?? '') !== '';
    const { answer, error } = await this.#askTraffic((source) => source.figures({ by, isWanted, withIdle }));
    const now = clock.now();
    return {
      head: {
        apiVersion: API_VERSION,
        kind: 'Traffic',
        mode,
        time: timeText(now),
        since: timeText(answer?.since ?? now),
        by,
        lostEvents: answer?.lostEvents ?? 0,
        leftOut: answer?.leftOut ?? 0,
        families: this.#looks(error).map((look) => ({ ...look, warning: answer?.warning ?? null })),
      },
      items: answer?.items ?? [],
    };
  }

  /** The flows that there are now, which `send` passes on, some at a time. */
  async flows(question: FlowQuestion): Promise<FlowStream> {
    const { mode, clock } = this.#options;
    const isWanted = await this.#flowFilter(question);
    const { answer, error } = await this.#askTraffic(async (source) => source);
    return {
      head: {
        apiVersion: API_VERSION,
        kind: 'FlowList',
        mode,
        time: timeText(clock.now()),
        families: this.#looks(error),
      },
      send: async (write) => answer?.flows(isWanted, write),
    };
  }

  /** Calls back with what happens to flows from now on, and when that fails; the function returned ends it. */
  async watchFlows(
    question: FlowQuestion,
    onEvent: (event: FlowEvent) => void,
    onEnd: () => void,
  ): Promise<() => void> {
    const isWanted = await this.#flowFilter(question);
    const { answer, error } = await this.#askTraffic((source) =>
      source.watch(
        isWanted,
        (event) => onEvent({ apiVersion: API_VERSION, kind: 'FlowEvent', ...event }),
        onEnd,
      ),
    );
    if (!answer) throw new NotReadyError(error);
    return answer;
  }

  /** The clients that affinity binds to endpoints now. */
  async affinity(question: AffinityQuestion): Promise<LongReport<AffinityReport>> {
    const { mode, families, clock } = this.#options;
    const isSelected = await this.#isPlanSelected(question);
    const looks = await Promise.all(families.map((family) => this.#bindingsOf(family, isSelected, question)));
    const items = longest(
      looks.flatMap(({ bindings }) => bindings.items),
      question.limit,
    );
    const found = looks.reduce((sum, { bindings }) => sum + bindings.found, 0);
    return {
      head: {
        apiVersion: API_VERSION,
        kind: 'AffinityList',
        mode,
        time: timeText(clock.now()),
        leftOut: found - items.length,
        families: looks.map(({ look }) => look),
      },
      items,
    };
  }

  async #bindingsOf(
    { view, kernel }: InspectedFamily,
    isSelected: (plan: PlannedPort) => boolean,
    question: AffinityQuestion,
  ): Promise<{ look: FamilyLook; bindings: LongestBindings }> {
    const { family } = view;
    const bindings = new LongestBindings(view, question);
    const missing = this.#whyNoPlans({ view });
    if (missing !== undefined) return { look: { family, error: missing }, bindings };
    const plans = [...view.plans.values()].filter(
      (plan) => plan.port.affinitySeconds > 0 && isSelected(plan),
    );
    if (plans.length === 0) return { look: { family, error: null }, bindings };
    const { error } = await this.#look(kernel, (held) =>
      held.ask((inspection) => inspection.bindings(plans, bindings)),
    );
    return { look: { family, error }, bindings };
  }

  #looks(error: string | null): FamilyLook[] {
    return this.#options.families.map(({ view }) => ({ family: view.family, error }));
  }

  async #askTraffic<T>(
    question: (source: TrafficSource) => Promise<T>,
  ): Promise<{ answer: T; error: null } | { answer: undefined; error: string }> {
    const { traffic } = this.#options;
    if (!traffic) return { answer: undefined, error: 'traffic is told by a running proxy only' };
    try {
      return { answer: await question(await traffic()), error: null };
    } catch (error) {
      return { answer: undefined, error: messageOf(error) };
    }
  }

  async #flowFilter(question: FlowQuestion): Promise<FlowFilter> {
    const isByAddress = isAddress(question.name ?? '');
    return flowFilter(question, isByAddress ? () => true : await this.#isPlanSelected(question));
  }

  async #isPlanSelected({ name, namespace }: Selector): Promise<(plan: PlannedPort) => boolean> {
    const waiting = this.#waitsForCopy();
    if (waiting !== undefined) throw new NotReadyError(waiting);
    const selections = new Map<Family, Selection>();
    for (const { view, facts, rules } of this.#options.families) {
      const { family } = view;
      selections.set(
        family,
        await selectionOf({ name, namespace }, { family, facts, direct: rules.direct?.() }),
      );
    }
    return (plan) => selections.get(plan.port.family)?.port(plan) ?? false;
  }

  /** What happened in the last hour. Throws a QuestionError when `since` cannot be read. */
  async journal({ since, ...selector }: JournalQuestion = {}): Promise<JournalReport> {
    const { journal, clock } = this.#options;
    return selectFromJournal(journalReport(journal, clock.now()), since, await this.#isSelected(selector));
  }

  /** Tells Services by their name, also those that are gone; by an address, those that have it now. */
  async #isSelected(selector: Selector): Promise<((service: string) => boolean) | undefined> {
    const { name = '', namespace = '' } = selector;
    if (name === '' && namespace === '') return undefined;
    if (!isAddress(name)) return (service) => isServiceNamed(service, selector);
    const known = new Set<string>();
    for (const { namespace, name } of await this.services(selector)) known.add(`${namespace}/${name}`);
    return (service) => known.has(service);
  }

  /** Reports about the selected plans. Reads the plans when the caller iterates, piece by piece. */
  async #selected<Report>(
    selector: Selector,
    reportsOf: (plan: PlannedPort, selection: Selection, family: InspectedFamily) => Iterable<Report>,
  ): Promise<Iterable<Report>> {
    const waiting = this.#waitsForCopy();
    if (waiting !== undefined) throw new NotReadyError(waiting);
    const selected = await Promise.all(
      this.#options.families.map(async (family) => {
        const { view, facts, rules } = family;
        const asked = { family: view.family, facts, direct: rules.direct?.() };
        return { family, selection: await selectionOf(selector, asked) };
      }),
    );
    return (function* () {
      for (const { family, selection } of selected) {
        for (const plan of family.view.plans.values())
          if (selection.port(plan)) yield* reportsOf(plan, selection, family);
      }
    })();
  }

  /** Why there are no plans of the family to answer from; undefined when there are. */
  #whyNoPlans({ view }: Pick<InspectedFamily, 'view'>): string | undefined {
    return view.isInitialised ? this.#waitsForCopy() : 'Services and EndpointSlices have not been listed yet';
  }

  /** The reason while another copy of this program serves: this one has no plans, and that one has the answer. */
  #waitsForCopy(): string | undefined {
    return this.#options.problems().find(({ kind }) => kind === ANOTHER_COPY_RUNS)?.text;
  }

  /** Looks at the rules of other programs once the way of the packet is known. */
  async #others(
    packet: Packet,
    answer: KernelAnswer | null,
    { otherRules }: InspectedFamily,
  ): Promise<Pick<ExplanationReport, 'otherRules' | 'otherRulesUnknown'>> {
    if (!answer || !otherRules) {
      return { otherRules: null, otherRulesUnknown: 'the way of the packet in the kernel is unknown' };
    }
    try {
      return { otherRules: await otherRules(packet, answer), otherRulesUnknown: null };
    } catch (error) {
      return { otherRules: null, otherRulesUnknown: messageOf(error) };
    }
  }

  async #bothSides(
    packet: Packet,
    { view, facts, rules, kernel }: InspectedFamily,
  ): Promise<Omit<ExplanationReport, 'otherRules' | 'otherRulesUnknown'>> {
    const { mode, nodeName } = this.#options;
    const planned = explainPacket(packet, view.plans, await facts(), rules);
    const found = await this.#look(kernel, (held) => held.fateOf(packet));
    return {
      apiVersion: API_VERSION,
      kind: 'Explanation',
      mode,
      nodeName,
      packet,
      planned: {
        service: planned.service ?? null,
        frontend: planned.frontend ?? null,
        fate: planned.fate,
        reasons: planned.reasons,
      },
      placements: fatePlacements(view, planned.service, [planned.fate, found.answer?.fate]),
      kernel: found.answer ?? null,
      kernelUnknown: found.error,
      differences: found.answer
        ? fateDifferences(planned.fate, found.answer.fate, found.answer.bound !== undefined)
        : [],
    };
  }

  async #compareFamily({ view, kernel }: InspectedFamily) {
    const { family } = view;
    const look = (answer: Partial<FamilyComparison>): FamilyComparison => ({
      family,
      error: null,
      settled: true,
      differences: 0,
      ...answer,
    });
    const none: DifferenceReport[] = [];
    const missing = this.#whyNoPlans({ view });
    if (missing !== undefined) return { look: look({ error: missing }), items: none };
    const compare = () =>
      this.#look(kernel, (held) =>
        held.ask((inspection) => {
          const { serviceCIDRs, totalEndpoints, departed } = view;
          // A copy: the plans change with the next sync.
          return inspection.compare({ plans: new Map(view.plans), serviceCIDRs, totalEndpoints, departed });
        }),
      );
    const { result, settled } = await compareSettled(
      view,
      this.#options.clock,
      compare,
      ({ answer }) => answer !== undefined && answer.length > 0,
    );
    if (!result.answer) return { look: look({ error: result.error }), items: none };
    const items = result.answer.map((found) => ({ ...found, family, service: found.service ?? null }));
    return { look: look({ settled, differences: items.length }), items };
  }

  /** The answer of the kernel, or the reason why there is none. */
  async #look<T>(
    kernel: KernelView | string,
    question: (kernel: KernelView) => Promise<T>,
  ): Promise<{ answer: T; error: null } | { answer: undefined; error: string }> {
    if (typeof kernel === 'string') return { answer: undefined, error: kernel };
    try {
      return { answer: await question(kernel), error: null };
    } catch (error) {
      return { answer: undefined, error: messageOf(error) };
    }
  }
}
