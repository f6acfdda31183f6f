import type { KernelInterfaces } from '../../kernel/open.ts';
import type { Clock } from '../../lib/clock.ts';
import { isLoopback, joinHostPort, toIP } from '../../model/ip.ts';
import type { ServicePlan } from '../../plan/service-plan.ts';
import type { SyncRequest } from '../backend.ts';
import { forwardedAnswer } from '../forwarded-fate.ts';
import {
  answered,
  type BindingSink,
  type Difference,
  type FollowedPacket,
  type Inspection,
  type KernelAnswer,
  type Packet,
} from '../inspection.ts';
import { answerOf } from '../nft-answer.ts';
import { readBindings } from './bindings.ts';
import { tableDifferences } from './differences.ts';
import { fastPathDifferences } from './fast-path-differences.ts';
import { fastPathBody, isWanted, readFastPath } from './fast-path-rules.ts';
import { isSetName, setDefinition, tableOf } from './layout.ts';
import type { LoopbackProxy } from './loopback-proxy.ts';
import type { NftablesSettings } from './settings.ts';

export interface NftablesInspectionOptions {
  readonly settings: NftablesSettings;
  /** Closed with the inspection. */
  readonly kernel: KernelInterfaces;
  readonly clock: Clock;
  /** Serves node ports on loopback addresses; undefined when it does not run in this process. */
  readonly loopback: () => Pick<LoopbackProxy, 'outlook'> | undefined;
}

/** Reads the table of one family. */
export class NftablesInspection implements Inspection {
  readonly #options: NftablesInspectionOptions;

  constructor(options: NftablesInspectionOptions) {
    this.#options = options;
  }

  /** Rejects with NotUnderstoodError when the packet meets a rule whose meaning is not known. */
  async ask(packet: Packet): Promise<KernelAnswer> {
    const { nft, addresses: source } = this.#options.kernel;
    const addresses = await source.list();
    const { family, masqueradeBit } = this.#options.settings;
    const table = tableOf(family);
    const followed = await answerOf(packet, {
      client: nft,
      table,
      definitionOf: (set) => (isSetName(set) ? setDefinition(family, set) : undefined),
      addresses,
    });
    const lookedAt = `table ${table.family} ${table.name}`;
    if (followed.fate.action === 'pass' && this.#mayBeServedOnLoopback(packet)) {
      return this.#onLoopback(packet, followed, lookedAt);
    }
    const answer = answered(followed, lookedAt, { kind: 'rewritten', mark: 1 << masqueradeBit });
    return { ...answer, ...(await this.#fastPath(packet, followed, addresses)) };
  }

  async compare(request: Omit<SyncRequest, 'changed'>): Promise<readonly Difference[]> {
    const { kernel, settings, clock } = this.#options;
    const addresses = settings.nodePortAddresses.matchAll ? [] : await kernel.addresses.list();
    const differences = await tableDifferences(
      { client: kernel.nft, settings, clock },
      { ...request, addresses },
    );
    return [...differences, ...(await fastPathDifferences(kernel, settings))];
  }

  bindings(plans: readonly ServicePlan[], sink: BindingSink): Promise<void> {
    const { kernel, settings } = this.#options;
    return readBindings(kernel.nft, settings.family, plans, sink);
  }

  async close(): Promise<void> {
    this.#options.kernel.close();
  }

  /** Whether the connection gets to the fast path: it must be forwarded to another host, and the kernel must hold the rule. */
  async #fastPath(
    { protocol, origin }: Packet,
    { fate }: FollowedPacket,
    addresses: readonly string[],
  ): Promise<Pick<KernelAnswer, 'fastPathAfter'>> {
    const { settings, kernel } = this.#options;
    const { fastPath, family } = settings;
    if (!fastPath || fate.action !== 'forward' || origin === 'node' || protocol === 'SCTP') return {};
    if (fate.targets.some(({ endpoint }) => addresses.some((ip) => isAt(endpoint, ip)))) return {};
    const held = await readFastPath(kernel.nft, family);
    return held.flowtable && isWanted(held, fastPathBody(fastPath)) ? { fastPathAfter: fastPath.after } : {};
  }

  #mayBeServedOnLoopback({ destination }: Packet): boolean {
    const { localhostNodePorts, nodePortAddresses } = this.#options.settings;
    return localhostNodePorts && nodePortAddresses.explicitLoopback && isLoopback(toIP(destination));
  }

  /** Asks the listener at the packet's destination. */
  async #onLoopback(packet: Packet, followed: FollowedPacket, lookedAt: string): Promise<KernelAnswer> {
    const { protocol, destination: ip, port, source } = packet;
    const at = joinHostPort(ip, port);
    const loopback = this.#options.loopback();
    if (!loopback) throw new Error(`only the process of kube-proxy can tell whether it listens at ${at}`);
    const outlook = protocol === 'SCTP' ? undefined : await loopback.outlook(protocol, { ip, port }, source);
    const answer = outlook ? forwardedAnswer(outlook, packet) : followed;
    return answered(answer, `${lookedAt} and the listeners of this process`, { kind: 'listener', at });
  }
}

/** Whether an endpoint, `ip:port`, has this address. */
function isAt(endpoint: string, ip: string): boolean {
  return endpoint.startsWith(ip.includes(':') ? `[${ip}]:` : `${ip}:`);
}
