import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrackedFlow } from '../kernel/ct/tracked-flow.ts';
import type { SocketAddresses } from '../kernel/diag/codec.ts';
import { NetlinkError } from '../kernel/netlink/error.ts';
import { addressKeyFrom } from '../model/address-key.ts';
import { silentLogger } from '../obs/log.ts';
import { DepartedSockets } from './departed-sockets.ts';

const established = 3;

function flow(
  from: string,
  sourcePort: number,
  answerer: string,
  fields: Partial<TrackedFlow> = {},
): TrackedFlow {
  const key = (text: string) => addressKeyFrom(text) ?? assert.fail(text);
  return Object.assign(new TrackedFlow(), {
    protocol: 6,
    tcpState: established,
    source: key(from),
    sourcePort,
    destination: key('10.96.0.1'),
    destinationPort: 80,
    answerer: key(answerer),
    answererPort: 8080,
    ...fields,
  });
}

class Fixture {
  passes = 0;
  readonly ended: number[] = [];
  onWalk = (): void => {};
  refusal: Error | undefined;
  readonly sockets: DepartedSockets;

  constructor(flows: readonly TrackedFlow[]) {
    this.sockets = new DepartedSockets({
      family: 'IPv4',
      logger: silentLogger,
      open: async () => ({
        ownAddresses: ['192.0.2.1', '2001:db8::1'],
        flows: {
          forEachFilteredFlow: async (_, visitor) => {
            this.passes++;
            for (const one of flows) visitor.flow(one);
            this.onWalk();
          },
          close() {},
        },
        sockets: {
          destroyTCP: async (sockets: readonly SocketAddresses[]) => {
            if (this.refusal) throw this.refusal;
            this.ended.push(...sockets.map(({ sourcePort }) => sourcePort));
            return sockets.length;
          },
          close() {},
        },
      }),
    });
  }
}

const departed = () => new Map([['10.244.0.1:8080', {}]]);
/** Every pass ends in a few turns. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

test('only open connections of this node to a departed endpoint are ended, once', async () => {
  const { sockets, ended, ...fixture } = new Fixture([
    flow('192.0.2.1', 1, '10.244.0.1'),
    flow('192.0.2.1', 2, '10.244.0.2'),
    flow('10.244.0.9', 3, '10.244.0.1'),
    flow('192.0.2.1', 4, '10.244.0.1', { tcpState: 7 }),
    flow('192.0.2.1', 5, '10.244.0.1', { protocol: 17 }),
    flow('192.0.2.1', 6, '10.244.0.1', {
      destination: addressKeyFrom('10.244.0.1') ?? 0,
      destinationPort: 8080,
    }),
    flow('192.0.2.1', 7, '10.244.0.1', { answererPort: 81 }),
  ]);
  assert.equal(fixture.passes, 0);
  const gone = departed();
  sockets.follow(gone);
  await settled();
  sockets.follow(gone);
  await settled();
  assert.deepEqual(ended, [1]);
});

test('an endpoint that comes back during a pass is left alone, and taken up when it departs again', async () => {
  const fixture = new Fixture([flow('192.0.2.1', 1, '10.244.0.1')]);
  const gone = departed();
  fixture.onWalk = () => gone.clear();
  fixture.sockets.follow(gone);
  await settled();
  assert.deepEqual(fixture.ended, []);
  fixture.sockets.follow(gone);
  fixture.onWalk = () => {};
  gone.set('10.244.0.1:8080', {});
  fixture.sockets.follow(gone);
  await settled();
  assert.deepEqual(fixture.ended, [1]);
});

test('nothing is opened while nothing has departed, and no more after the kernel said that it cannot', async () => {
  const fixture = new Fixture([flow('192.0.2.1', 1, '10.244.0.1')]);
  fixture.sockets.follow(new Map());
  await settled();
  assert.equal(fixture.passes, 0);
  fixture.refusal = new NetlinkError('destroy TCP socket', { errno: 95, text: '' });
  fixture.sockets.follow(departed());
  await settled();
  fixture.sockets.follow(new Map([['10.244.0.3:8080', {}]]));
  await settled();
  assert.equal(fixture.passes, 1);
  await fixture.sockets.close();
});
