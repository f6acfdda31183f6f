import type { Forwarder } from '../../../forwarder/forwarder.ts';
import type { KernelInterfaces } from '../../../kernel/open.ts';
import type { ServicePort } from '../../../model/service-port.ts';
import type { EndpointList, ServicePlan } from '../../../plan/service-plan.ts';
import type { SyncRequest } from '../../backend.ts';
import type { BindingSink, Difference, Inspection, KernelAnswer, Packet } from '../../inspection.ts';
import type { Uncaptured } from '../capture.ts';
import { DirectDriver } from '../direct-driver.ts';
import type { PortalDriver } from '../portal-driver.ts';
import { serviceName } from '../proxy-sockets.ts';
import type { UserspaceSettings } from '../settings.ts';
import { askListeners, compareListeners, type DirectInspectionOptions } from './direct-inspection.ts';
import { askPortals, comparePortals, type PortalInspectionOptions } from './portal-inspection.ts';

/** A driver of this process, and the forwarder that it uses. */
export interface Running {
  readonly driver: DirectDriver | PortalDriver;
  readonly forwarder: Forwarder;
}

export interface UserspaceInspectionOptions {
  readonly settings: UserspaceSettings;
  /** What runs in this process at the moment; undefined when nothing does, as in a dry run. */
  readonly running: () => Running | undefined;
  /** The means to read the kernel, or why packets cannot be captured. */
  readonly kernel: KernelInterfaces | Uncaptured;
}

type Subject =
  | { readonly kind: 'portals'; readonly options: PortalInspectionOptions }
  | { readonly kind: 'listeners'; readonly options: DirectInspectionOptions };

/** Inspects userspace mode: the driver of this process, or the state that a new one would find. */
export class UserspaceInspection implements Inspection {
  readonly #options: UserspaceInspectionOptions;

  constructor(options: UserspaceInspectionOptions) {
    this.#options = options;
  }

  async ask(packet: Packet): Promise<KernelAnswer> {
    const { kind, options } = this.#subject();
    return kind === 'portals' ? askPortals(packet, options) : askListeners(packet, options);
  }

  async compare(request: Omit<SyncRequest, 'changed'>): Promise<readonly Difference[]> {
    const { kind, options } = this.#subject();
    return kind === 'portals' ? comparePortals(request, options) : compareListeners(request, options);
  }

  /** Rejects when the proxy does not run in this process. */
  async bindings(plans: readonly ServicePlan[], sink: BindingSink): Promise<void> {
    const running = this.#options.running();
    if (!running) throw new Error('only the process of kube-proxy knows its clients');
    for (const { port } of plans) {
      for (const list of ['cluster', 'local'] as const) {
        await readBindings(running.forwarder, port, list, sink);
      }
    }
  }

  async close(): Promise<void> {
    this.#options.kernel.close();
  }

  #subject(): Subject {
    const { running, kernel } = this.#options;
    const now = running();
    if (!now) return 'reason' in kernel ? this.#listeners(kernel.reason) : this.#portals();
    const { driver, forwarder } = now;
    return driver instanceof DirectDriver
      ? this.#listeners(driver.reason, { served: driver.served, forwarder })
      : this.#portals({ served: driver.served, returnPorts: driver.returnPorts, forwarder });
  }

  #listeners(reason: string, running?: DirectInspectionOptions['running']): Subject {
    const { settings, kernel } = this.#options;
    return { kind: 'listeners', options: { settings, addresses: kernel.addresses, reason, running } };
  }

  #portals(running?: PortalInspectionOptions['running']): Subject {
    const { settings, kernel } = this.#options;
    if ('reason' in kernel) throw new Error(`the kernel cannot be read: ${kernel.reason}`);
    return { kind: 'portals', options: { settings, kernel, running } };
  }
}

/** Reads page by page, so that the traffic of the forwarder goes on meanwhile. */
async function readBindings(
  forwarder: Pick<Forwarder, 'bindings'>,
  port: ServicePort,
  list: EndpointList,
  sink: BindingSink,
): Promise<void> {
  let start: number | undefined;
  do {
    const page = await forwarder.bindings(serviceName(port, list), start);
    for (const { client, endpoint, secondsLeft } of page.bindings) {
      sink.add({ service: port.key, client, endpoint, secondsLeft: Math.round(secondsLeft) });
    }
    start = page.next;
  } while (start !== undefined);
}
