import type { IpsetClient } from '../../kernel/ipset/client.ts';
import { Commands } from '../../kernel/iptables/commands.ts';
import { type IpvsClient, IpvsUnavailableError } from '../../kernel/ipvs/client.ts';
import type { IpvsOpeners } from '../../kernel/ipvs/openers.ts';
import { readRealServerTable } from '../../kernel/ipvs/proc-table.ts';
import { isNetlinkError } from '../../kernel/netlink/error.ts';
import type { RunProgram } from '../../kernel/program.ts';
import type { AddressBook } from '../../kernel/route/address-book.ts';
import type { InterfaceAddresses } from '../../kernel/route/addresses.ts';
import type { RouteClient } from '../../kernel/route/client.ts';
import type { Device, DummyDevices } from '../../kernel/route/dummy-device.ts';
import type { Clock } from '../../lib/clock.ts';
import { openTogether } from '../../lib/open-together.ts';
import type { Family } from '../../model/ip.ts';
import type { Logger } from '../../obs/log.ts';
import { ensureJumps } from '../jumps.ts';
import { AbsentError } from './errors.ts';
import {
  type AddressFailure,
  deviceName,
  type Iptables,
  type IpvsKernel,
  type IpvsServers,
  type ServiceDevice,
} from './kernel.ts';
import { loadIpvsModule } from './preconditions.ts';

export interface LinuxOptions {
  readonly open: IpvsOpeners;
  readonly run: RunProgram;
  readonly clock: Clock;
  readonly logger: Logger;
  /** False: do not load a missing module. */
  readonly mayLoad?: boolean;
}

/** The sockets of ipvs mode, which both families share. */
export interface LinuxIpvs {
  readonly ipvs: IpvsClient;
  readonly sets: IpsetClient;
  readonly devices: DummyDevices;
  /** The node's addresses without those of `kube-ipvs0`; changes on that device are reported, too. */
  readonly nodeAddresses: Pick<InterfaceAddresses, 'list' | 'watch'>;
  kernelOf(family: Family): IpvsKernel;
  close(): void;
}

/** Opens them; rejects with IpvsUnavailableError when the kernel has no IPVS. */
export function openLinuxIpvs(options: LinuxOptions): Promise<LinuxIpvs> {
  const { open, run, clock, logger } = options;
  return openTogether(async (keep, close) => {
    const ipvs = keep(await openIpvs(options));
    const sets = keep(open.sets());
    const devices = keep(open.devices());
    const route = keep(open.route());
    const book = keep(open.addresses());
    const device = new LinuxServiceDevice(devices, route);
    const nodeAddresses = {
      list: () => addressesBeside(book, devices),
      watch: (onChange: () => void, onFailure: (error: Error) => void) =>
        route.watchAddresses(onChange, onFailure),
    };
    const servers: IpvsServers = {
      listServers: () => ipvs.listServers(),
      listRealServers: (server) => ipvs.listRealServers(server),
      listAllRealServers: readRealServerTable,
      apply: (operations) => ipvs.apply(operations),
    };
    const kernelOf = (family: Family): IpvsKernel => {
      const commands = new Commands({ family, run, clock, logger });
      const iptables: Iptables = {
        ensure: async (structure) => (await ensureJumps(commands, structure)).errors,
        restore: (input) => commands.restore([input]),
      };
      return { servers, sets, device, iptables, nodeAddresses: nodeAddresses.list };
    };
    return { ipvs, sets, devices, nodeAddresses, kernelOf, close };
  });
}

async function openIpvs({ open, run, logger, mayLoad = true }: LinuxOptions): Promise<IpvsClient> {
  try {
    return await open.ipvs();
  } catch (error) {
    if (!mayLoad || !(error instanceof IpvsUnavailableError)) throw error;
  }
  await loadIpvsModule(run, logger);
  return open.ipvs();
}

/**
 * The device of service addresses. It is looked up by name at each use, since another program may delete and recreate
 * it.
 */
export class LinuxServiceDevice implements ServiceDevice {
  readonly #devices: DummyDevices;
  readonly #route: Pick<RouteClient, 'listAddresses'>;

  constructor(devices: DummyDevices, route: Pick<RouteClient, 'listAddresses'>) {
    this.#devices = devices;
    this.#route = route;
  }

  async ensure(): Promise<void> {
    if (await this.#devices.find(deviceName)) return;
    try {
      await this.#devices.create(deviceName);
    } catch (error) {
      // The other family was quicker.
      if (!isNetlinkError(error, 'EEXIST')) throw error;
    }
  }

  async addresses(): Promise<readonly string[]> {
    const { index } = await this.#device();
    const all = await this.#route.listAddresses();
    return all.filter(({ interfaceIndex }) => interfaceIndex === index).map(({ ip }) => ip);
  }

  async bind(addresses: readonly string[]): Promise<readonly AddressFailure[]> {
    return this.#devices.addAddresses(await this.#device(), addresses);
  }

  async unbind(addresses: readonly string[]): Promise<readonly AddressFailure[]> {
    return this.#devices.removeAddresses(await this.#device(), addresses);
  }

  async #device(): Promise<Device> {
    const device = await this.#devices.find(deviceName);
    if (!device) throw new AbsentError(`device ${deviceName}`);
    return device;
  }
}

async function addressesBeside(book: AddressBook, devices: DummyDevices): Promise<string[]> {
  const device = await devices.find(deviceName);
  const others = (await book.list()).filter(({ interfaceIndex }) => interfaceIndex !== device?.index);
  return [...new Set(others.map(({ ip }) => ip))];
}
