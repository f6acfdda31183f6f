import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../../../test/fake-clock.ts';
import { PacketCounters } from '../../backends/iptables/counters.ts';
import type { Libc } from '../../native/libc.ts';
import { SystemError } from '../../native/system-error.ts';
import { silentLogger } from '../../obs/log.ts';
import { NETLINK_NETFILTER, NETLINK_ROUTE } from '../netlink/constants.ts';
import { xtablesKernel } from './open.ts';

const EPROTONOSUPPORT = 93;

/** A kernel with sockets of some netlink protocols only; `open` has those in use. */
function kernelWith(...protocols: readonly number[]) {
  const open = new Set<number>();
  const libc = {
    socket: (_domain: number, _type: number, protocol: number) => {
      if (!protocols.includes(protocol)) throw new SystemError('socket', EPROTONOSUPPORT);
      open.add(protocol);
      return protocol;
    },
    setsockopt() {},
    bind() {},
    getsockname() {},
    watch: () => ({ close() {} }),
    close: (fd: number) => void open.delete(fd),
  };
  return { open, libc: libc as unknown as Libc };
}

test('without netfilter sockets only the counters fail', async () => {
  const { open, libc } = kernelWith(NETLINK_ROUTE);
  const kernel = xtablesKernel(libc, new FakeClock());
  await assert.rejects(kernel.acct.get('IMayExist'), { code: 'EPROTONOSUPPORT' });
  assert.equal(await PacketCounters.open(kernel.acct, silentLogger), undefined);
  kernel.close();
  assert.equal(open.size, 0);
});

test('opening fails when addresses cannot be listed', () => {
  const { libc } = kernelWith(NETLINK_NETFILTER);
  assert.throws(() => xtablesKernel(libc, new FakeClock()), { code: 'EPROTONOSUPPORT' });
});
