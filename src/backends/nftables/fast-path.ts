import { NftBatch } from '../../kernel/nft/batch.ts';
import type { NftClient } from '../../kernel/nft/client.ts';
import { NftError } from '../../kernel/nft/errors.ts';
import type { Operation } from '../../kernel/nft/operation.ts';
import type { Closable, RouteClient } from '../../kernel/route/client.ts';
import type { Link } from '../../kernel/route/link.ts';
import type { Clock, Timer } from '../../lib/clock.ts';
import { sleep } from '../../lib/sleep.ts';
import { messageOf } from '../../lib/thrown.ts';
import type { FastPathSettings } from '../../model/fast-path.ts';
import type { Logger } from '../../obs/log.ts';
import type { FastPathStatus, LeftOutDevice } from '../backend.ts';
import { LastingSubscription } from '../lasting-subscription.ts';
import { chooseDevices, type DeviceChoice } from './fast-path-devices.ts';
import {
  fastPathChange,
  fastPathRemoval,
  flowtableOf,
  readFastPath,
  type WantedFastPath,
} from './fast-path-rules.ts';
import { tableComment, tableOf } from './layout.ts';
import type { NftablesSettings } from './settings.ts';

/** The node's interfaces. */
export type Links = Pick<RouteClient, 'listLinks' | 'watchLinks'>;

export interface FastPathOptions {
  readonly settings: NftablesSettings;
  readonly client: NftClient;
  readonly links: Links;
  /** Whether the kernel counts packets of new connections; undefined when that is not known. */
  readonly isCounting: () => boolean | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A device may go between the list and the commit. */
const maxAttempts = 3;
/** Pods come and go with devices of their own; a burst of changes is looked at once. */
const settleMs = 100;
const releaseMs = 100;
const retryMs = 60_000;

/**
 * Keeps the flowtable of one family, its devices and the rule that puts connections into it. They have transactions of their
 * own, after those of services: what the kernel refuses here disturbs no service. Calls must not overlap with each other
 * or with a sync.
 */
export class FastPath {
  readonly #options: FastPathOptions;
  #status: FastPathStatus | undefined;
  /** The MTU of each interface when the fast path was last written; undefined before that. */
  #mtus: ReadonlyMap<string, number | undefined> | undefined;
  /** Schedules another try. */
  #tryLater: () => void = () => {};

  constructor(options: FastPathOptions) {
    this.#options = options;
  }

  /** Undefined when it is off, or before the first sync. */
  get status(): FastPathStatus | undefined {
    return this.#status;
  }

  /**
   * Puts right what differs from the settings; removes everything when they ask for no fast path. With `anew`, all
   * connections leave the fast path: their next packets meet the rules again. Does not reject.
   */
  ensure({ anew = false } = {}): Promise<void> {
    return this.#write(anew);
  }

  /** As `ensure` with `anew`, but does nothing when the settings ask for no fast path. */
  async renew(): Promise<void> {
    if (this.#options.settings.fastPath) await this.#write(true);
  }

  /** Does the work while no connection is on the fast path. */
  async without(work: () => Promise<void>): Promise<void> {
    if (!this.#status?.isInUse) return work();
    await this.#remove();
    try {
      // The kernel releases the connections some time after the commit.
      await sleep(this.#options.clock, releaseMs);
      await work();
    } finally {
      await this.ensure();
    }
  }

  /** Calls `onChange` after devices came or went, and a minute after the kernel refused something for now. */
  watch(onChange: () => void): Closable {
    const { links, clock, logger, settings } = this.#options;
    let timer: Timer | undefined;
    const schedule = (ms: number) => {
      timer ??= clock.setTimeout(() => {
        timer = undefined;
        onChange();
      }, ms);
    };
    const settle = () => schedule(settleMs);
    this.#tryLater = () => schedule(retryMs);
    const subscription = new LastingSubscription({
      topic: 'changes of interfaces',
      open: (onLost) => links.watchLinks(settle, onLost),
      onReopened: settle,
      clock,
      logger,
      details: { ipFamily: settings.family },
    });
    return {
      close: () => {
        this.#tryLater = () => {};
        timer?.cancel();
        subscription.close();
      },
    };
  }

  async #write(anew: boolean): Promise<void> {
    const { fastPath, family } = this.#options.settings;
    if (!fastPath) return this.#removeEarlier();
    try {
      this.#note(fastPath, await this.#bring({ ...fastPath, family }, anew));
    } catch (error) {
      // What is left of it may be wrong, and connections to departed endpoints must not stay there.
      await this.#remove().catch(() => {});
      this.#fail(fastPath, error);
    }
  }

  /** Removes what a start with the fast path left. */
  async #removeEarlier(): Promise<void> {
    const { settings, logger } = this.#options;
    try {
      await this.#remove();
    } catch (error) {
      logger.error(error, 'Failed to remove the fast path of an earlier start', {
        ipFamily: settings.family,
      });
    }
  }

  async #remove(): Promise<void> {
    const { client, settings } = this.#options;
    await client.commit(fastPathRemoval(await readFastPath(client, settings.family)));
  }

  /** Writes what differs. Devices that the kernel refuses are left out. */
  async #bring(wanted: Omit<WantedFastPath, 'devices'>, anew: boolean): Promise<DeviceChoice> {
    const { client, isCounting } = this.#options;
    const refused: LeftOutDevice[] = [];
    for (let attempt = 1; ; attempt++) {
      const held = await readFastPath(client, wanted.family);
      const links = await this.#options.links.listLinks();
      const choice = without(chooseDevices(links), refused);
      // Loading the rule makes the kernel count packets, without which no connection gets to the fast path.
      const kept = isCounting() === false ? { ...held, rules: [] } : held;
      try {
        const isAnew = anew || this.#mayHaveOtherMTU(links);
        await client.commit(fastPathChange(kept, { ...wanted, devices: choice.devices }, isAnew));
        this.#mtus = new Map(links.map(({ name, mtu }) => [name, mtu]));
        return choice;
      } catch (error) {
        if (attempt === maxAttempts || !isAboutDevices(error)) throw error;
        refused.push(...(await this.#refusedOf(choice.devices)));
      }
    }
  }

  /**
   * Whether an interface has another MTU than before, or may have, as nobody watched before the start. The kernel keeps the
   * MTU that a connection had when it came to the fast path: in IPv6, it would go on sending packets that are too large
   * now, and their sender would not learn of it.
   */
  #mayHaveOtherMTU(links: readonly Link[]): boolean {
    const before = this.#mtus;
    return !before || links.some(({ name, mtu }) => before.has(name) && before.get(name) !== mtu);
  }

  /** The devices that the kernel refuses by themselves. */
  async #refusedOf(devices: readonly string[]): Promise<LeftOutDevice[]> {
    const { client, settings } = this.#options;
    const { family } = settings;
    const refused: LeftOutDevice[] = [];
    for (const device of devices) {
      const batch = new NftBatch().add('table', { ...tableOf(family), comment: tableComment });
      batch.add('flowtable', flowtableOf(family)).add('flowtable', flowtableOf(family, [device]));
      await client.check(batch).catch((error: unknown) => {
        refused.push({ device, reason: messageOf(error) });
      });
    }
    return refused;
  }

  #note(fastPath: FastPathSettings, { devices, leftOut }: DeviceChoice): void {
    const { settings, logger, isCounting } = this.#options;
    if (!this.#status?.isInUse) {
      logger.info('Fast path in use', { ipFamily: settings.family, ...fastPath, devices: devices.length });
    }
    this.#status = { ...fastPath, isInUse: true, isCounting: isCounting() !== false, devices, leftOut };
  }

  #fail(fastPath: FastPathSettings, error: unknown): void {
    const { settings, logger } = this.#options;
    const isLacking = lacksFlowtables(error);
    const text = messageOf(error);
    const reason = isLacking
      ? `this kernel has no flowtables (nf_flow_table, nft_flow_offload): ${text}`
      : text;
    if (this.#status?.reason !== reason) {
      logger.error(error, 'No fast path; connections take the usual way', {
        ipFamily: settings.family,
        reason,
      });
    }
    this.#status = { ...fastPath, isInUse: false, isCounting: true, reason, devices: [], leftOut: [] };
    if (!isLacking) this.#tryLater();
  }
}

/** Moves those of the chosen devices that are refused to those left out. */
function without({ devices, leftOut }: DeviceChoice, refused: readonly LeftOutDevice[]): DeviceChoice {
  const reasons = new Map(refused.map((one) => [one.device, one]));
  return {
    devices: devices.filter((device) => !reasons.has(device)),
    leftOut: [...leftOut, ...devices.flatMap((device) => reasons.get(device) ?? [])],
  };
}

/** Whether the kernel refused to add devices, and nothing else. */
function isAboutDevices(error: unknown): boolean {
  if (!(error instanceof NftError)) return false;
  return error.failures.every(({ operation }) => {
    return operation?.kind === 'flowtable' && operation.verb === 'add' && hasDevices(operation.object);
  });
}

function hasDevices(object: Operation['object']): boolean {
  return 'devices' in object && Array.isArray(object.devices) && object.devices.length > 0;
}

/** Whether the kernel knows no flowtables. Without the table, it would refuse the chain as well. */
function lacksFlowtables(error: unknown): boolean {
  if (!(error instanceof NftError)) return false;
  return error.failures.every(
    ({ operation }) =>
      operation?.verb === 'add' && (operation.kind === 'flowtable' || operation.kind === 'rule'),
  );
}
