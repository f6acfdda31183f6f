import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { IpvsFailure } from '../../kernel/ipvs/client.ts';
import {
  describeOperation,
  type IpvsOperation,
  type ListedVirtualServer,
  type VirtualServer,
} from '../../kernel/ipvs/objects.ts';
import { NetlinkError } from '../../kernel/netlink/error.ts';
import { silentLogger } from '../../obs/log.ts';
import { checkUsable, loadIpvsModule, type ProbedKernel, withMissingModules } from './preconditions.ts';

const rr: VirtualServer = {
  address: '10.96.0.1',
  port: 80,
  protocol: 'TCP',
  scheduler: 'rr',
  flags: 0,
  timeout: 0,
  netmask: 0xffffffff,
};
const probe: VirtualServer = { ...rr, address: '198.51.100.0', port: 20_000 };

suite('a scheduler', () => {
  test('a scheduler is tried with a virtual server that is removed again', async () => {
    const kernel = new ProbeKernel();
    await checkUsable(kernel, 'lc');
    assert.deepEqual(kernel.operations, [
      { verb: 'add', server: { ...probe, scheduler: 'lc' } },
      { verb: 'delete', server: { ...probe, scheduler: 'lc' } },
    ]);
  });

  test('a scheduler in use is not tried', async () => {
    for (const server of [rr, { foreign: 'firewall mark 1', family: 'IPv4', scheduler: 'rr' } as const]) {
      const kernel = new ProbeKernel([server]);
      await checkUsable(kernel, 'rr');
      assert.deepEqual(kernel.operations, []);
    }
  });

  test('a scheduler that the kernel lacks is the reason of the failure', async () => {
    const kernel = new ProbeKernel([rr], (operation) => operation.verb === 'add');
    await assert.rejects(checkUsable(kernel, 'foo'), {
      message:
        'scheduler foo is unusable: adding virtual server 198.51.100.0:20000/TCP: ENOENT (no such file or directory)',
    });
  });

  test('a scheduler is tried with the virtual server that an earlier run left', async () => {
    const kernel = new ProbeKernel([probe]);
    await checkUsable(kernel, 'lc');
    assert.deepEqual(
      kernel.operations.map(({ verb }) => verb),
      ['edit', 'delete'],
    );
  });

  test('a scheduler must show in the kernel, and the trial must be undone', async () => {
    const forgetful = new ProbeKernel();
    forgetful.listsNothing = true;
    await assert.rejects(checkUsable(forgetful, 'lc'), /does not list the virtual server that it took/);
    assert.equal(forgetful.operations.at(-1)?.verb, 'delete');
    const clinging = new ProbeKernel([], (operation) => operation.verb === 'delete');
    await assert.rejects(checkUsable(clinging, 'lc'), /the probe cannot be undone: deleting/);
  });
});

test('sets must be there, in a protocol that we speak', async () => {
  const kernel = new ProbeKernel();
  await assert.rejects(
    checkUsable({ ...kernel.probed, sets: { protocol: async () => 5 } }, 'rr'),
    /protocol 5/,
  );
  const sets = { protocol: () => Promise.reject(new Error('EINVAL')) };
  await assert.rejects(checkUsable({ ...kernel.probed, sets }, 'rr'), /no ipset \(module ip_set\): EINVAL/);
});

test('a reason comes with what the modules have to do with it', async () => {
  const run = async () => ({ status: 1, timedOut: false, output: '' });
  const files = { read: (path: string) => (path === '/proc/modules' ? 'ip_vs\n' : '6.1.0') };
  const error = await withMissingModules(new Error('no'), 'rr', { files, run });
  assert.match(
    error.message,
    /^can't use the IPVS proxier: no; missing modules of kernel 6\.1\.0: ip_vs_rr, /,
  );
  const loaded = { read: () => 'ip_vs\nip_vs_rr\nip_vs_wrr\nip_vs_sh\nnf_conntrack\n' };
  assert.equal(
    (await withMissingModules(new Error('no'), 'rr', { files: loaded, run })).message,
    "can't use the IPVS proxier: no",
  );
});

test('a module that cannot be loaded is no failure yet', async () => {
  await loadIpvsModule(async () => ({ status: 1, timedOut: false, output: 'not found' }), silentLogger);
  await loadIpvsModule(() => Promise.reject(new Error('ENOENT')), silentLogger);
  const commands: string[] = [];
  const run = async (program: string, args: readonly string[]) => {
    commands.push([program, ...args].join(' '));
    return { status: 0, timedOut: false, output: '' };
  };
  await loadIpvsModule(run, silentLogger);
  assert.deepEqual(commands, ['modprobe -va ip_vs']);
});

class ProbeKernel implements ProbedKernel {
  readonly operations: IpvsOperation[] = [];
  listsNothing = false;
  readonly #servers: ListedVirtualServer[];
  readonly #refuses: (operation: IpvsOperation) => boolean;

  constructor(
    servers: ListedVirtualServer[] = [],
    refuses: (operation: IpvsOperation) => boolean = () => false,
  ) {
    this.#servers = [...servers];
    this.#refuses = refuses;
  }

  readonly sets = { protocol: async () => 7 };

  readonly ipvs = {
    listServers: async () => (this.listsNothing ? [] : this.#servers),
    apply: async (operations: readonly IpvsOperation[]): Promise<IpvsFailure[]> => {
      this.operations.push(...operations);
      const failures = operations.filter(this.#refuses).map((operation) => ({
        operation,
        error: new NetlinkError(describeOperation(operation), { errno: 2, text: '' }),
      }));
      if (failures.length === 0) {
        for (const { verb, server } of operations)
          if (verb === 'add') this.#servers.push({ ...probe, ...server });
      }
      return failures;
    },
  };

  get probed(): ProbedKernel {
    return { ipvs: this.ipvs, sets: this.sets };
  }
}
