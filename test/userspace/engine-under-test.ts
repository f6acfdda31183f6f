import type { Limits } from '../../src/forwarder/admission.ts';
import type { Choice } from '../../src/forwarder/balancer.ts';
import type { Forwarder } from '../../src/forwarder/forwarder.ts';
import { localForwarder } from '../../src/forwarder/local-forwarder.ts';
import { limitsFor } from '../../src/forwarder/open-files.ts';
import type { Report } from '../../src/forwarder/reports.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { loadSockets } from '../../src/native/koffi-sockets.ts';
import type { Sockets } from '../../src/native/sockets.ts';
import type { Cleanups, Peer } from './peers.ts';

export interface EngineSettings {
  readonly limits?: Partial<Limits>;
  readonly udpIdleMs?: number;
  readonly sockets?: (real: Sockets) => Sockets;
}

/** An engine on real sockets with one service. */
export class EngineUnderTest {
  readonly engine: Forwarder;
  readonly sockets: Sockets;
  readonly reports: Report[] = [];
  #listeners = 0;

  static async open(cleanups: Cleanups, settings: EngineSettings = {}): Promise<EngineUnderTest> {
    const sockets = await loadSockets();
    const made = new EngineUnderTest(settings.sockets?.(sockets) ?? sockets, settings);
    cleanups.add(() => made.engine.close());
    return made;
  }

  private constructor(sockets: Sockets, { limits, udpIdleMs = 60_000 }: EngineSettings) {
    this.sockets = sockets;
    this.engine = localForwarder({
      sockets,
      limits: { ...limitsFor(20_000), ...limits },
      clock: systemClock,
      random: Math.random,
      report: (report) => this.reports.push(report),
      dialTimeouts: [250, 500, 1_000, 2_000],
      udpIdleMs,
    });
  }

  serve(endpoints: readonly Peer[], affinitySeconds = 0, choice: Choice = 'round-robin', key = 'web'): void {
    const addresses = endpoints.map(({ ip, port }) => ({ ip, port }));
    this.engine.setService(key, { endpoints: addresses, affinitySeconds, choice });
  }

  async listen(protocol: 'TCP' | 'UDP', ip = '127.0.0.1', key = 'web'): Promise<Peer & { id: string }> {
    const id = `listener-${this.#listeners++}`;
    const port = await this.engine.listen(id, { service: key, protocol, at: { ip, port: 0 } });
    return { ip, port, id };
  }

  async traffic(key = 'web') {
    const traffic = (await this.engine.traffic()).get(key);
    if (!traffic) throw new Error(`nothing is known of ${key}`);
    return traffic;
  }
}

/** Real sockets with one call whose result the function may replace. */
export function answering(call: keyof Sockets, answer: (...args: never[]) => unknown) {
  return (real: Sockets): Sockets =>
    new Proxy(real, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name, target);
        if (typeof member !== 'function') return member;
        if (name !== call) return member.bind(target);
        return (...args: never[]) => answer(...args) ?? member.apply(target, args);
      },
    });
}
